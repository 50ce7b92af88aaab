// How fast a checkpoint is audited, against one thread that only reads it, all in one run:
//
//   bench_audit [--rounds 15] [--quick] [--alone]
//
// A file of weights is written and read once, so that it stands in the system's cache. Every round
// reads it and runs each audit once, in turn; the ratio to the read is taken round by round, and
// its median printed.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "audit/audit.h"
#include "fourpiles/formats.h"

namespace fourpiles::bench {
namespace {

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double MedianOf(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// A safetensors file of `count` matrices of 4096 × 4096, normal with a deviation of 0.02.
std::string FileOf(const std::string& path, bool is_bfloat, std::size_t count) {
  constexpr std::size_t kElements = std::size_t{4096} * 4096;
  const std::size_t size = is_bfloat ? 2 : 4;
  std::string header = "{";
  for (std::size_t i = 0; i < count; ++i) {
    header += fmt::format(
        R"({}"layers.{}.weight":{{"dtype":"{}","shape":[4096,4096],"data_offsets":[{},{}]}})",
        i == 0 ? "" : ",", i, is_bfloat ? "BF16" : "F32", i * kElements * size,
        (i + 1) * kElements * size);
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::ofstream file(path, std::ios::binary);
  const std::uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> values(kElements);
  std::vector<std::uint16_t> codes(kElements);
  for (std::size_t i = 0; i < count; ++i) {
    std::ranges::generate(values, [&] { return normal(random); });
    if (is_bfloat) {
      EncodeArray(values, {*FindFormat("bfloat16"), std::as_writable_bytes(std::span(codes))});
    }
    const auto* const data = is_bfloat ? reinterpret_cast<const char*>(codes.data())
                                       : reinterpret_cast<const char*>(values.data());
    file.write(data, static_cast<std::streamsize>(kElements * size));
  }
  return path;
}

void ReadAll(const std::string& path) {
  static std::vector<std::byte> piece(std::size_t{1} << 20);
  const auto source = FileSource::Open(path);
  for (std::int64_t done = 0; done < source->Size();) {
    const auto bytes =
        std::min<std::int64_t>(source->Size() - done, static_cast<std::int64_t>(piece.size()));
    if (!source->ReadAt(done, std::span(piece).first(static_cast<std::size_t>(bytes)))) {
      std::abort();
    }
    done += bytes;
  }
}

struct Row {
  std::string name;
  std::vector<std::string> formats;
  int threads = 2;
};

void RunAudit(const std::string& path, const Row& row) {
  AuditOptions options = {.threads = row.threads};
  for (const std::string& name : row.formats) {
    options.formats.push_back(*FindAuditFormat(name));
  }
  const auto checkpoint = OpenCheckpoint(path);
  if (!AuditCheckpoint(*checkpoint, options)) {
    std::abort();
  }
}

std::string PeerSeconds(const std::string& library, const std::string& dtype,
                        const std::string& path) {
  const std::string command = fmt::format("/usr/bin/python3 {}/audit_peers.py {} {} {} 4096 2>&1",
                                          FOURPILES_BENCH_FOLDER, library, dtype, path);
  FILE* const pipe = popen(command.c_str(), "r");
  char line[64] = {};
  const bool answered = pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr;
  if (pipe != nullptr) {
    pclose(pipe);
  }
  return answered ? line : "";
}

struct Rounds {
  int count = 15;
  bool alone = false;  // what else a machine has is not asked
};

void Measure(const std::string& path, const std::vector<Row>& rows, const Rounds& rounds,
             const std::string& dtype) {
  ReadAll(path);
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  std::vector<double> reads;
  std::vector<std::vector<double>> seconds(rows.size());
  std::vector<std::vector<double>> ratios(rows.size());
  for (int round = 0; round < rounds.count; ++round) {
    const double read = SecondsOf([&] { ReadAll(path); });
    reads.push_back(read);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      seconds[i].push_back(SecondsOf([&] { RunAudit(path, rows[i]); }));
      ratios[i].push_back(read / seconds[i].back());
    }
  }
  fmt::print("\n{}, {:.0f} MiB in the cache\n\n| | GB/s | of the read |\n|---|---:|---:|\n", dtype,
             bytes / (1 << 20));
  fmt::print("| one thread reads it | {:.1f} | 1.00 |\n", bytes / MedianOf(reads) / 1e9);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    fmt::print("| {} | {:.2f} | {:.2f} |\n", rows[i].name, bytes / MedianOf(seconds[i]) / 1e9,
               MedianOf(ratios[i]));
  }
  std::fflush(stdout);
  for (const char* library : {"numpy", "torch"}) {
    if (rounds.alone) {
      break;
    }
    const double best = std::atof(PeerSeconds(library, dtype, path).c_str());
    if (best > 0) {
      fmt::print("| {}, float16 alone | {:.2f} | {:.2f} |\n", library, bytes / best / 1e9,
                 MedianOf(reads) / best);
    }
  }
}

void Main(const Rounds& rounds, std::size_t matrices) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  const std::vector<std::string> four = {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"};
  const std::vector<std::string> many = {
      "float16",         "bfloat16",      "float8_e4m3fn",        "float8_e5m2",
      "float8_e4m3fnuz", "float8_e3m4",   "float8_e4m3fn:scaled", "float8_e5m2:scaled",
      "float6_e2m3fn",   "float6_e3m2fn", "float4_e2m1fn",        "float4_e2m1fn:scaled"};
  const std::string bfloat = FileOf(folder + "/fourpiles-bench-bf16.safetensors", true, matrices);
  Measure(bfloat,
          {{"float16, 2 threads", {"float16"}},
           {"12 formats, 2 threads", many},
           {"12 formats, 1 thread", many, 1},
           {"mxfp4, 2 threads", {"mxfp4"}}},
          rounds, "bfloat16");
  std::filesystem::remove(bfloat);
  const std::string floats = FileOf(folder + "/fourpiles-bench-f32.safetensors", false, matrices);
  Measure(floats,
          {{"float16, 2 threads", {"float16"}},
           {"4 formats, 2 threads", four},
           {"4 formats, 1 thread", four, 1},
           {"mxfp4, 2 threads", {"mxfp4"}}},
          rounds, "float32");
  std::filesystem::remove(floats);
}

}  // namespace
}  // namespace fourpiles::bench

int main(int count, char** words) {
  fourpiles::bench::Rounds rounds;
  std::size_t matrices = 24;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--quick") == 0) {
      rounds = {.count = 1, .alone = true};
      matrices = 1;
    } else if (std::strcmp(words[i], "--rounds") == 0 && i + 1 < count) {
      rounds.count = std::max(1, std::atoi(words[++i]));
    } else if (std::strcmp(words[i], "--alone") == 0) {
      rounds.alone = true;
    }
  }
  fourpiles::bench::Main(rounds, matrices);
  return 0;
}
