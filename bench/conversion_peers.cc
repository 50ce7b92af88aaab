#include "bench/conversion_peers.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <Eigen/Core>
#include <immintrin.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fourpiles::bench {
namespace {

template <class From, class To>
void Cast(const From* from, To* to, std::size_t count) {
  const auto size = static_cast<Eigen::Index>(count);
  Eigen::Map<Eigen::Array<To, Eigen::Dynamic, 1>>(to, size) =
      Eigen::Map<const Eigen::Array<From, Eigen::Dynamic, 1>>(from, size).template cast<To>();
}

}  // namespace

// kLoads vectors read for kStores written, again and again, and then what is left of either side.
template <std::size_t kLoads, std::size_t kStores>
__attribute__((target("avx2"))) void LoadAndStoreUnits(std::span<const std::byte> from,
                                                       std::span<std::byte> to, bool streams) {
  const auto* const load = reinterpret_cast<const __m256i*>(from.data());
  auto* const store = reinterpret_cast<__m256i*>(to.data());
  const std::size_t loads = from.size() / sizeof(__m256i);
  const std::size_t stores = to.size() / sizeof(__m256i);
  const std::size_t units = std::min(loads / kLoads, stores / kStores);
  __m256i mixed = _mm256_setzero_si256();
  const auto write = [&](std::size_t at) __attribute__((target("avx2"))) {
    if (streams) {
      _mm256_stream_si256(store + at, mixed);
    } else {
      _mm256_storeu_si256(store + at, mixed);
    }
  };
  for (std::size_t unit = 0; unit < units; ++unit) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kLoads; ++i) {
      mixed = _mm256_xor_si256(mixed, _mm256_loadu_si256(load + unit * kLoads + i));
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kStores; ++i) {
      write(unit * kStores + i);
    }
  }
  for (std::size_t i = units * kLoads; i < loads; ++i) {
    mixed = _mm256_xor_si256(mixed, _mm256_loadu_si256(load + i));
  }
  for (std::size_t i = units * kStores; i < stores; ++i) {
    write(i);
  }
  _mm_sfence();
}

void LoadAndStore(std::span<const std::byte> from, std::span<std::byte> to, bool streams) {
  const double ratio = static_cast<double>(from.size()) / static_cast<double>(to.size());
  if (ratio > 6) {
    LoadAndStoreUnits<7, 1>(from, to, streams);
  } else if (ratio > 3) {
    LoadAndStoreUnits<4, 1>(from, to, streams);
  } else if (ratio > 1.5) {
    LoadAndStoreUnits<8, 4>(from, to, streams);
  } else if (ratio > 0.75) {
    LoadAndStoreUnits<4, 4>(from, to, streams);
  } else if (ratio > 0.35) {
    LoadAndStoreUnits<4, 8>(from, to, streams);
  } else if (ratio > 1.0 / 6) {
    LoadAndStoreUnits<1, 4>(from, to, streams);
  } else {
    LoadAndStoreUnits<1, 7>(from, to, streams);
  }
}

__attribute__((target("avx2,f16c"))) void FloatToHalfF16c(std::span<const float> from,
                                                          std::span<std::uint16_t> to) {
  for (std::size_t i = 0; i + 8 <= from.size(); i += 8) {
    const __m128i half =
        _mm256_cvtps_ph(_mm256_loadu_ps(from.data() + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to.data() + i), half);
  }
}

__attribute__((target("avx2,f16c"))) void HalfToFloatF16c(std::span<const std::uint16_t> from,
                                                          std::span<float> to) {
  for (std::size_t i = 0; i + 8 <= from.size(); i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.data() + i));
    _mm256_storeu_ps(to.data() + i, _mm256_cvtph_ps(half));
  }
}

void FloatToHalfEigen(std::span<const float> from, std::span<std::uint16_t> to) {
  Cast(from.data(), reinterpret_cast<Eigen::half*>(to.data()), from.size());
}
void HalfToFloatEigen(std::span<const std::uint16_t> from, std::span<float> to) {
  Cast(reinterpret_cast<const Eigen::half*>(from.data()), to.data(), from.size());
}
void FloatToBfloatEigen(std::span<const float> from, std::span<std::uint16_t> to) {
  Cast(from.data(), reinterpret_cast<Eigen::bfloat16*>(to.data()), from.size());
}
void BfloatToFloatEigen(std::span<const std::uint16_t> from, std::span<float> to) {
  Cast(reinterpret_cast<const Eigen::bfloat16*>(from.data()), to.data(), from.size());
}

bool HasInstructions() {
  return __builtin_cpu_supports("avx2") != 0;  // and with it F16C, a name clang 14 does not know
}

PythonPeers::PythonPeers(const std::string& script) {
  int to_child[2] = {};
  int from_child[2] = {};
  if (pipe(to_child) != 0 || pipe(from_child) != 0) {
    return;
  }
  std::signal(SIGPIPE, SIG_IGN);  // no Python, no peers
  process_ = fork();
  if (process_ < 0) {
    return;
  }
  if (process_ == 0) {
    dup2(to_child[0], STDIN_FILENO);
    dup2(from_child[1], STDOUT_FILENO);
    close(to_child[1]);
    close(from_child[0]);
    execlp("/usr/bin/python3", "python3", script.c_str(), nullptr);
    std::_Exit(1);
  }
  close(to_child[0]);
  close(from_child[1]);
  to_ = to_child[1];
  from_ = from_child[0];
}

PythonPeers::~PythonPeers() {
  close(to_);
  close(from_);
  if (process_ > 0) {
    waitpid(process_, nullptr, 0);
  }
}

std::string PythonPeers::Ask(const std::string& line) {
  if (write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return "none";
  }
  std::string answer;
  for (char c = 0; read(from_, &c, 1) == 1 && c != '\n';) {
    answer += c;
  }
  return answer.empty() ? "none" : answer;
}

bool PythonPeers::Has(const std::string& operation) {
  return Ask(operation + " 1\n") != "none";
}

double PythonPeers::Seconds(const std::string& operation, int repeats) {
  return std::atof(Ask(operation + " " + std::to_string(repeats) + "\n").c_str());
}

}  // namespace fourpiles::bench
