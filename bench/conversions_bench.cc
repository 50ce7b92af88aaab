// How fast arrays are converted, against the floor of loading and storing the same bytes, memcpy,
// and the alternatives of this machine, all in one run:
//
//   bench_conversions [--rounds 25] [--quick] [--only TEXT]
//
// Every round runs each candidate of a case once, in turn, so that a machine whose speed drifts
// slows all alike; the ratio to the floor is taken round by round, and its median printed.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>

#include "bench/conversion_peers.h"
#include "fourpiles/formats.h"

namespace fourpiles::bench {
namespace {

// Memory in large pages, touched before it is measured.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_((bytes + kPage) / kPage * kPage) {
    data_ = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes_));
    madvise(data_, bytes_, MADV_HUGEPAGE);
    std::memset(data_, 0, bytes_);
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  template <class T>
  std::span<T> As(std::size_t count) {
    return {reinterpret_cast<T*>(data_), count};
  }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  std::size_t bytes_;
  std::byte* data_;
};

struct Candidate {
  std::string name;
  std::function<double(int repeats)> seconds;  // of one run
};

struct Case {
  std::string name;
  std::size_t bytes_in = 0;
  std::size_t bytes_out = 0;
  std::vector<Candidate> candidates;
};

struct Setting {
  std::size_t elements = 0;
  int threads = 1;
  int rounds = 25;
  int repeats = 1;
  std::string only;
  bool quick = false;  // one small run of each
};

Candidate Run(std::string name, std::function<void()> work) {
  return {std::move(name), [work = std::move(work)](int repeats) {
            const auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < repeats; ++i) {
              work();
            }
            const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
            return time.count() / repeats;
          }};
}

void Must(const Result<void>& done) {
  if (!done) {
    std::abort();
  }
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Halves of both arrays on a thread each.
void OnThreads(int threads, std::span<const std::byte> from, std::span<std::byte> to,
               const std::function<void(std::span<const std::byte>, std::span<std::byte>)>& work) {
  std::vector<std::jthread> others;
  const auto part = [&](std::size_t i) {
    const auto n = static_cast<std::size_t>(threads);
    const auto cut = [&](std::size_t size, std::size_t at) { return size / 64 * at / n * 64; };
    work(from.subspan(cut(from.size(), i), cut(from.size(), i + 1) - cut(from.size(), i)),
         to.subspan(cut(to.size(), i), cut(to.size(), i + 1) - cut(to.size(), i)));
  };
  for (std::size_t i = 1; i < static_cast<std::size_t>(threads); ++i) {
    others.emplace_back(part, i);
  }
  part(0);
}

void Measure(const Case& measured, const Setting& setting) {
  if (measured.name.find(setting.only) == std::string::npos) {
    return;
  }
  std::vector<std::vector<double>> seconds(measured.candidates.size());
  for (int round = -1; round < setting.rounds; ++round) {  // the first warms up
    for (std::size_t i = 0; i < measured.candidates.size(); ++i) {
      const double one = measured.candidates[i].seconds(setting.repeats);
      if (round >= 0) {
        seconds[i].push_back(one);
      }
    }
  }
  const auto bytes = static_cast<double>(measured.bytes_in + measured.bytes_out);
  for (std::size_t i = 0; i < measured.candidates.size(); ++i) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < seconds[i].size(); ++round) {
      ratios.push_back(seconds[0][round] / seconds[i][round]);
    }
    fmt::print("| {} | {} | {:.1f} | {:.2f} |\n", i == 0 ? measured.name : "",
               measured.candidates[i].name, bytes / Median(seconds[i]) / 1e9, Median(ratios));
  }
  std::fflush(stdout);
}

// The memory that the cases of one setting share.
class Arena {
 public:
  Arena(const Setting& setting, PythonPeers& python)
      : setting_(setting),
        python_(python),
        floats_(setting.elements * 4),
        codes_(setting.elements * 4) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.0F, 0.02F);
    const std::span<float> values = floats_.As<float>(setting.elements);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = i < kSample ? normal(random) : values[i - kSample];
    }
  }

  std::span<float> Floats() { return floats_.As<float>(setting_.elements); }
  std::span<std::uint16_t> Halves() { return codes_.As<std::uint16_t>(setting_.elements); }
  int Threads() const { return setting_.threads; }

  // A case with the floor and memcpy of its bytes.
  Case Begin(std::string name, std::size_t bytes_in, std::size_t bytes_out, bool widens) {
    Case made{std::move(name), bytes_in, bytes_out, {}};
    const auto from =
        widens ? codes_.As<const std::byte>(bytes_in) : floats_.As<const std::byte>(bytes_in);
    const auto to = widens ? floats_.As<std::byte>(bytes_out) : codes_.As<std::byte>(bytes_out);
    const bool streams = bytes_in + bytes_out > std::size_t{4} << 20;
    const int threads = setting_.threads;
    made.candidates.push_back(Run("load and store", [=] {
      OnThreads(threads, from, to, [&](auto a, auto b) { LoadAndStore(a, b, streams); });
    }));
    const std::size_t half = (bytes_in + bytes_out) / 2;
    const auto copy_from = floats_.As<const std::byte>(std::min(half, setting_.elements * 4));
    const auto copy_to = codes_.As<std::byte>(copy_from.size());
    const double scale = static_cast<double>(half) / static_cast<double>(copy_from.size());
    Candidate copy = Run("memcpy", [=] {
      OnThreads(threads, copy_from, copy_to,
                [](auto a, auto b) { std::memcpy(b.data(), a.data(), a.size()); });
    });
    if (!widens) {
      made.candidates.push_back(
          {copy.name, [=](int repeats) { return scale * copy.seconds(repeats); }});
    }
    return made;
  }

  void AddPython(Case& made, const std::string& from, const std::string& to) {
    for (const std::string library : {"numpy", "torch"}) {
      if (library == "numpy" && setting_.threads > 1) {
        continue;
      }
      const std::string operation =
          fmt::format("{} {} {} {} {}", library, from, to, setting_.elements, setting_.threads);
      if (python_.Has(operation)) {
        made.candidates.push_back(
            {library == "torch" ? "PyTorch copy_" : "NumPy copyto",
             [this, operation](int repeats) { return python_.Seconds(operation, repeats); }});
      }
    }
  }

  void Encode(const std::string& name, const std::string& title, const Conversion& conversion) {
    const NumberFormat format = FindFormat(name).value();
    const std::size_t bytes = setting_.elements * static_cast<std::size_t>(CodeBytes(format));
    Case made = Begin(title, setting_.elements * 4, bytes, false);
    made.candidates.push_back(Run("**fourpiles**", [=, this] {
      EncodeArray(Floats(), {format, codes_.As<std::byte>(bytes)}, conversion, Threads());
    }));
    AddEncodePeers(made, format);
    Measure(made, setting_);
  }

  void Decode(const std::string& name, const std::string& title) {
    const NumberFormat format = FindFormat(name).value();
    const std::size_t bytes = setting_.elements * static_cast<std::size_t>(CodeBytes(format));
    const std::vector<float> values(Floats().begin(), Floats().end());
    EncodeArray(values, {format, codes_.As<std::byte>(bytes)});
    Case made = Begin(title, bytes, setting_.elements * 4, true);
    made.candidates.push_back(Run("**fourpiles**", [=, this] {
      DecodeArray({format, codes_.As<const std::byte>(bytes)}, Floats(), Threads());
    }));
    AddDecodePeers(made, format);
    Measure(made, setting_);
    std::ranges::copy(values, Floats().begin());
  }

  void RoundTrip(const std::string& name, const std::string& title, const Conversion& conversion) {
    const NumberFormat format = FindFormat(name).value();
    const std::size_t bytes = setting_.elements * 4;
    Case made = Begin(title, bytes, bytes, false);
    const std::span<float> rounded = codes_.As<float>(setting_.elements);
    made.candidates.push_back(Run("**fourpiles**", [=, this] {
      RoundTripArray(Floats(), format, conversion, rounded, Threads());
    }));
    made.candidates.push_back(Run("**fourpiles**, with statistics", [=, this] {
      RoundArray(Floats(), format, conversion, rounded, Threads());
    }));
    Measure(made, setting_);
  }

  void Blocks(const std::string& name, const std::string& title) {
    if (title.find(setting_.only) == std::string::npos) {
      return;
    }
    BlockTensor tensor;
    tensor.format = FindBlockFormat(name).value();
    const auto columns = std::min<std::int64_t>(4096, static_cast<std::int64_t>(setting_.elements));
    tensor.shape = {static_cast<std::int64_t>(setting_.elements) / columns, columns};
    const auto bytes = static_cast<std::size_t>(StorageBytes(tensor.shape, tensor.format));
    Case encode = Begin(title, setting_.elements * 4, bytes, false);
    encode.candidates.push_back(
        Run("**fourpiles**", [&] { Must(EncodeBlocks(Floats(), {}, tensor, Threads())); }));
    Measure(encode, setting_);
    const std::vector<float> values(Floats().begin(), Floats().end());
    Case decode = Begin(title + ", decoded", bytes, setting_.elements * 4, true);
    decode.candidates.push_back(
        Run("**fourpiles**", [&] { Must(DecodeBlocks(tensor, Floats(), Threads())); }));
    Measure(decode, setting_);
    std::ranges::copy(values, Floats().begin());
  }

 private:
  static constexpr std::size_t kSample = std::size_t{1} << 16;

  void AddEncodePeers(Case& made, const NumberFormat& format) {
    if (format.name == "float16") {
      AddPeer(made, "F16C", [this] { FloatToHalfF16c(Floats(), Halves()); });
      AddPeer(made, "Eigen", [this] { FloatToHalfEigen(Floats(), Halves()); });
    } else if (format.name == "bfloat16") {
      AddPeer(made, "Eigen", [this] { FloatToBfloatEigen(Floats(), Halves()); });
    }
    AddPython(made, "float32", std::string(format.name));
  }

  void AddDecodePeers(Case& made, const NumberFormat& format) {
    if (format.name == "float16") {
      AddPeer(made, "F16C", [this] { HalfToFloatF16c(Halves(), Floats()); });
      AddPeer(made, "Eigen", [this] { HalfToFloatEigen(Halves(), Floats()); });
    } else if (format.name == "bfloat16") {
      AddPeer(made, "Eigen", [this] { BfloatToFloatEigen(Halves(), Floats()); });
    }
    AddPython(made, std::string(format.name), "float32");
  }

  // Peers that have no threads of their own.
  void AddPeer(Case& made, std::string name, std::function<void()> work) {
    if (setting_.threads == 1) {
      made.candidates.push_back(Run(std::move(name), std::move(work)));
    }
  }

  const Setting& setting_;
  PythonPeers& python_;
  Buffer floats_;
  Buffer codes_;
};

void MeasureAll(const Setting& setting, PythonPeers& python) {
  fmt::print("\n{} of float32, {} thread{}\n\n", setting.elements >> 20 ? "64 MiB" : "256 KiB",
             setting.threads, setting.threads == 1 ? "" : "s");
  fmt::print("| | | GB/s | of the floor |\n|---|---|---:|---:|\n");
  Arena arena(setting, python);
  arena.Encode("float16", "float32 → float16", {});
  arena.Encode("bfloat16", "float32 → bfloat16", {});
  arena.Encode("float8_e4m3fn", "float32 → float8_e4m3fn", {});
  arena.Encode("float8_e4m3fn", "float32 → float8_e4m3fn, saturating",
               NearestEven(Overflow::kSaturate));
  arena.Encode("float8_e5m2", "float32 → float8_e5m2", {});
  arena.Encode("float4_e2m1fn", "float32 → float4_e2m1fn, a byte each", {});
  arena.Encode("float8_e4m3fn", "float32 → float8_e4m3fn, toward zero",
               {.rounding = RoundingMode::kTowardZero});
  arena.Encode("bfloat16", "float32 → bfloat16, stochastic",
               {.rounding = RoundingMode::kStochastic});
  arena.Decode("float16", "float16 → float32");
  arena.Decode("bfloat16", "bfloat16 → float32");
  arena.Decode("float8_e4m3fn", "float8_e4m3fn → float32");
  arena.Decode("float8_e5m2", "float8_e5m2 → float32");
  arena.RoundTrip("bfloat16", "through bfloat16 and back", {});
  arena.RoundTrip("float8_e4m3fn", "through float8_e4m3fn and back", {});
  for (const std::string name : {"q8_0", "q4_0", "mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "mxint8",
                                 "nvfp4", "nf4", "int8", "int4"}) {
    arena.Blocks(name, "float32 → " + name);
  }
}

Setting SettingOf(std::span<char*> words) {
  Setting setting;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool has_value = i + 1 < words.size();
    if (word == "--quick") {
      setting.quick = true;
      setting.rounds = 1;
    } else if (word == "--rounds" && has_value) {
      setting.rounds = std::atoi(words[++i]);
    } else if (word == "--only" && has_value) {
      setting.only = words[++i];
    }
  }
  return setting;
}

Setting Sized(Setting setting, std::size_t bytes, int threads) {
  setting.threads = threads;
  setting.elements = (setting.quick ? std::size_t{256} << 10 : bytes) / sizeof(float);
  setting.repeats = setting.quick || setting.elements >> 20 != 0 ? 1 : 200;
  return setting;
}

}  // namespace
}  // namespace fourpiles::bench

int main(int count, char** arguments) {
  namespace bench = fourpiles::bench;
  if (!bench::HasInstructions()) {
    fmt::print("the floor is measured with AVX2, which this processor does not have\n");
    return 0;
  }
  const bench::Setting setting =
      bench::SettingOf(std::span(arguments, static_cast<std::size_t>(count)));
  bench::PythonPeers python(FOURPILES_BENCH_FOLDER "/conversion_peers.py");
  for (const std::size_t bytes : {std::size_t{64} << 20, std::size_t{256} << 10}) {
    for (const int threads : {1, 2}) {
      bench::MeasureAll(bench::Sized(setting, bytes, threads), python);
    }
  }
  return 0;
}
