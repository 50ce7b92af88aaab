#include "tensors/file_formats.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "tensors/gguf.h"
#include "tensors/npy.h"
#include "tensors/safetensors.h"
#include "tensors/torch.h"

namespace fourpiles {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kWhite = " \t\r\n\f";
constexpr std::size_t kBeginningBytes = 512;  // one block of a tar archive

// A header length that the file can hold, and JSON behind it.
bool IsSafetensors(const FileBeginning& file) {
  if (file.bytes.size() < 10) {
    return false;
  }
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(file.bytes[i]);
  }
  const std::size_t first = file.bytes.find_first_not_of(" \t\r\n", 8);
  return length >= 2 && length <= static_cast<std::uint64_t>(file.size) - 8 &&
         first != std::string_view::npos && file.bytes[first] == '{';
}

template <char... kBytes>
bool StartsWith(const FileBeginning& file) {
  constexpr char kMagic[] = {kBytes...};
  return file.bytes.starts_with(std::string_view(kMagic, sizeof...(kBytes)));
}

bool IsZip(const FileBeginning& file) {
  return StartsWith<'P', 'K', 3, 4>(file) || StartsWith<'P', 'K', 5, 6>(file);
}

// The first member is an array: its name stands behind the 30 bytes of its local header.
bool IsNpz(const FileBeginning& file) {
  if (!IsZip(file)) {
    return false;
  }
  const bool is_named = file.name.ends_with(".npz");
  if (is_named || file.bytes.size() < 30) {
    return is_named;
  }
  const auto low = static_cast<unsigned char>(file.bytes[26]);
  const auto high = static_cast<unsigned char>(file.bytes[27]);
  return file.bytes.substr(30, std::size_t{low} + std::size_t{high} * 256).ends_with(".npy");
}

bool IsText(const FileBeginning& file, std::initializer_list<std::string_view> beginnings) {
  const std::size_t first = file.bytes.find_first_not_of(kWhite);
  if (first == std::string_view::npos) {
    return false;
  }
  const std::string text = LowerCase(file.bytes.substr(first, 40));
  return std::ranges::any_of(beginnings, [&](std::string_view b) { return text.starts_with(b); });
}

// ModelProto: field 1, ir_version, a small number (onnx f7546912, onnx.proto).
bool IsOnnx(const FileBeginning& file) {
  return file.name.ends_with(".onnx") ||
         (file.bytes.size() > 4 && file.bytes[0] == '\x08' && file.bytes[1] > 0 &&
          file.bytes[1] < 20 && (file.bytes[2] == '\x12' || file.bytes[2] == '\x3a'));
}

// Protocol 2 and later open with PROTO; older ones are opcodes in ASCII (CPython, pickletools.py).
bool IsPickle(const FileBeginning& file) {
  const bool has_protocol =
      file.bytes.size() > 1 && file.bytes[0] == '\x80' && file.bytes[1] >= 0 && file.bytes[1] <= 5;
  const bool is_named = file.name.ends_with(".pkl") || file.name.ends_with(".pickle");
  // "(dp0\n", "(lp0\n", and "cmodule\nname\n".
  const std::string_view line =
      file.bytes.substr(0, std::min<std::size_t>(file.bytes.find('\n'), 80));
  const bool is_text =
      file.bytes.starts_with("(dp") || file.bytes.starts_with("(lp") ||
      (line.size() > 1 && line.size() < file.bytes.size() && line[0] == 'c' &&
       std::ranges::all_of(line, [](char c) {
         return ('a' <= LowerCase(c) && LowerCase(c) <= 'z') || c == '_' || c == '.';
       }));
  return has_protocol || is_named || is_text;
}

bool IsTar(const FileBeginning& file) {
  return file.bytes.size() >= 262 && file.bytes.substr(257, 5) == "ustar";
}

// FlatBuffers: the identifier stands behind the offset of the root table.
bool IsTflite(const FileBeginning& file) {
  return file.bytes.size() >= 8 && file.bytes.substr(4, 4) == "TFL3";
}

// Letters, signs and white space alone, as an error page or a note has them.
bool IsPlainText(const FileBeginning& file) {
  // The beginning may end within the last character.
  const std::size_t most_cut = file.bytes.size() == kBeginningBytes ? 3 : 0;
  return Utf8Prefix(file.bytes) + most_cut >= file.bytes.size() &&
         file.bytes.find_first_not_of(kWhite) != std::string_view::npos &&
         std::ranges::all_of(file.bytes, [](char c) {
           return static_cast<unsigned char>(c) >= ' ' ? c != '\x7F'
                                                       : kWhite.find(c) != std::string_view::npos;
         });
}

constexpr std::string_view kText = "text file";
constexpr std::string_view kUnpackHint = "unpack it and give the files within";

// Asked in this order. Magic numbers stand in the documents of the formats.
constexpr std::array kFormats = {
    FileFormat{"safetensors", ".safetensors", IsSafetensors, ReadSafetensors},
    FileFormat{"GGUF", ".gguf",
               [](const FileBeginning& f) {
                 return StartsWith<'G', 'G', 'U', 'F'>(f) || StartsWith<'F', 'U', 'G', 'G'>(f);
               },
               ReadGguf},
    FileFormat{"GGML file, older than GGUF", "",
               [](const FileBeginning& f) {
                 return StartsWith<'l', 'm', 'g', 'g'>(f) || StartsWith<'f', 'm', 'g', 'g'>(f) ||
                        StartsWith<'t', 'j', 'g', 'g'>(f);
               },
               nullptr, "convert the model to GGUF again"},
    FileFormat{
        "Git LFS pointer", "",
        [](const FileBeginning& f) { return f.bytes.starts_with("version https://git-lfs"); },
        nullptr, "\"git lfs pull\" fetches the file that it stands for"},
    FileFormat{"HTML page", "",
               [](const FileBeginning& f) {
                 return IsText(f, {"<!doctype html", "<html"});
               },
               nullptr, "the download went wrong; fetch the file again"},
    FileFormat{"NumPy archive", ".npz", IsNpz, ReadNpz},
    FileFormat{"zip archive", ".pt", IsZip, ReadTorchZip},
    FileFormat{
        "NumPy array", ".npy",
        [](const FileBeginning& f) { return StartsWith<'\x93', 'N', 'U', 'M', 'P', 'Y'>(f); },
        ReadNpy},
    FileFormat{
        "HDF5 file", ".h5",
        [](const FileBeginning& f) { return StartsWith<'\x89', 'H', 'D', 'F', '\r', '\n'>(f); },
        nullptr, "export the weights as safetensors"},
    FileFormat{"TensorFlow Lite model", ".tflite", IsTflite, nullptr,
               "export the weights as safetensors"},
    FileFormat{"7z archive", ".7z",
               [](const FileBeginning& f) { return StartsWith<'7', 'z', '\xBC', '\xAF'>(f); },
               nullptr, kUnpackHint},
    FileFormat{"RAR archive", ".rar",
               [](const FileBeginning& f) { return StartsWith<'R', 'a', 'r', '!'>(f); }, nullptr,
               kUnpackHint},
    FileFormat{"xz archive", ".xz",
               [](const FileBeginning& f) { return StartsWith<'\xFD', '7', 'z', 'X', 'Z'>(f); },
               nullptr, kUnpackHint},
    FileFormat{"gzip archive", ".gz",
               [](const FileBeginning& f) { return StartsWith<'\x1F', '\x8B'>(f); }, nullptr,
               kUnpackHint},
    FileFormat{"zstd archive", ".zst",
               [](const FileBeginning& f) { return StartsWith<'\x28', '\xB5', '\x2F', '\xFD'>(f); },
               nullptr, kUnpackHint},
    FileFormat{"bzip2 archive", ".bz2",
               [](const FileBeginning& f) { return StartsWith<'B', 'Z', 'h'>(f); }, nullptr,
               kUnpackHint},
    FileFormat{"tar archive", ".pt", IsTar, ReadTorchTar},
    FileFormat{"pickle", ".pt", IsPickle, ReadPickleFile},
    FileFormat{"ONNX model", ".onnx", IsOnnx, nullptr, "give the model it was exported from"},
    FileFormat{kText, "", IsPlainText, nullptr,
               "look into it: a failed download may have left its message there"},
};

std::string BeginningOf(const ByteSource& source) {
  const auto count = std::min<std::int64_t>(source.Size(), kBeginningBytes);
  std::string bytes(static_cast<std::size_t>(count), '\0');
  const auto read = source.ReadAt(0, std::as_writable_bytes(std::span(bytes)));
  return read ? bytes : std::string();
}

FileReading Refused(std::string_view format, ErrorText text) {
  return {.format = format,
          .findings = {{.verdict = FileVerdict::kRefuse, .text = std::move(text)}}};
}

// An archive that says what it is must be looked at by a person; one under another ending hides.
FileVerdict VerdictOfUnread(const FileFormat& format, std::string_view lower_name) {
  const bool is_named = format.hint == kUnpackHint && lower_name.ends_with(format.ending);
  return is_named ? FileVerdict::kReport : FileVerdict::kRefuse;
}

// "a text file that begins \"404: Not Found\""
std::string TextFile(std::string_view bytes) {
  constexpr std::size_t kLongest = 60;
  bytes.remove_prefix(bytes.find_first_not_of(kWhite));
  std::string_view line = bytes.substr(0, bytes.find_first_of("\r\n"));
  const bool is_long = line.size() > kLongest;
  line = line.substr(0, Utf8Prefix(line.substr(0, kLongest)));
  return fmt::format("a text file that begins \"{}{}\"", line, is_long ? "…" : "");
}

std::string WithArticle(std::string_view noun) {
  const bool vowel = std::string_view("AEHIOaeiox").find(noun.front()) != std::string_view::npos;
  return fmt::format("{} {}", vowel ? "an" : "a", noun);
}

}  // namespace

const FileFormat* FormatOf(const ByteSource& source) {
  const std::string bytes = BeginningOf(source);
  const std::string name = LowerCase(source.Name());
  const FileBeginning file = {.bytes = bytes, .size = source.Size(), .name = name};
  const auto* found = std::ranges::find_if(
      kFormats, [&](const FileFormat& format) { return format.recognises(file); });
  if (found == kFormats.end()) {
    found = std::ranges::find_if(kFormats, [&](const FileFormat& format) {
      return !format.ending.empty() && name.ends_with(format.ending);
    });
  }
  return found == kFormats.end() ? nullptr : found;
}

FileReading ReadTensorFile(const ByteSource& source) {
  const std::string name(source.Name());
  if (source.Size() == 0) {
    return Refused("empty", {name, "an empty file", "expected a file of tensors",
                             "the download may have failed; fetch the file again"});
  }
  const FileFormat* format = FormatOf(source);
  if (format == nullptr) {
    return Refused("unknown", {name, "a file of no known kind", std::string(kExpectedFile), ""});
  }
  const std::string lower = LowerCase(name);
  if (format->read == nullptr) {
    std::string found = format->name == kText
                            ? TextFile(BeginningOf(source))
                            : WithArticle(format->name) + ", which this version does not read";
    FileReading unread = Refused(format->name, {name, std::move(found), std::string(kExpectedFile),
                                                std::string(format->hint)});
    unread.findings.front().verdict = VerdictOfUnread(*format, lower);
    return unread;
  }
  FileReading reading = format->read(source);
  const auto* const named = std::ranges::find_if(kFormats, [&](const FileFormat& other) {
    return !other.ending.empty() && lower.ends_with(other.ending);
  });
  if (named != kFormats.end() && named->ending != format->ending) {
    reading.findings.push_back(
        {.verdict = FileVerdict::kAcceptWithWarning,
         .text = {name, fmt::format("a {} file under the ending {}", format->name, named->ending),
                  "the content decides", ""}});
  }
  return reading;
}

}  // namespace fourpiles
