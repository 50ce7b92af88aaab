#pragma once

// Catalogues of records: those compiled in, and a file of the user's in the same form.

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/try.h"
#include "model/data_file.h"
#include "model/names.h"
#include "model/text_file.h"

namespace fourpiles {

// Reads one record of JSON; the second argument names the document in errors.
template <class T>
using ReadRecordFunction = Result<T> (*)(const Json& json, std::string_view where);

// Every record of the files, which hold one record each or an array of them. What is compiled in
// has passed its tests, so that an error is a fault of ours.
template <class T>
std::vector<T> CompiledRecords(std::span<const DataFile> files, ReadRecordFunction<T> read) {
  std::vector<T> records;
  for (const DataFile& file : files) {
    const Result<Json> json = ReadJson(file.text, file.name);
    CHECK(json.has_value());
    const Json::Array* array = json->AsArray();
    for (const Json& one : array != nullptr ? *array : Json::Array{*json}) {
      Result<T> record = read(one, file.name);
      CHECK(record.has_value());
      records.push_back(*std::move(record));
    }
  }
  return records;
}

// The record in a file of the user.
template <class T>
Result<T> RecordOfFile(const std::string& path, ReadRecordFunction<T> read) {
  TRY(const std::string text, ReadTextFile(path));
  TRY(const Json json, ReadJson(text, path));
  return read(json, path);
}

// The record that the name means: one in a file of the user when it ends in ".json", else one of
// the catalogue.
template <class T>
Result<T> FindRecord(std::string_view name, const std::vector<T>& records,
                     ReadRecordFunction<T> read, const Sought& sought) {
  if (name.ends_with(".json")) {
    return RecordOfFile(std::string(name), read);
  }
  std::vector<Names> names(records.size());
  std::transform(records.begin(), records.end(), names.begin(),
                 [](const T& record) { return record.names; });
  TRY(const std::size_t index, FindName(name, names, sought));
  return records[index];
}

// The same in a catalogue of one record a file, which its id names. A search reads the records that
// the name stands in, most often one; all are read only to say what it may have meant.
template <class T>
Result<T> FindRecord(std::string_view name, std::span<const DataFile> files,
                     ReadRecordFunction<T> read, const Sought& sought) {
  for (const DataFile& file : files) {
    if (SameName(file.name, name)) {
      return CompiledRecords(std::span(&file, 1), read).front();
    }
  }
  for (const DataFile& file : files) {
    if (HoldsName(file.text, name)) {
      T record = CompiledRecords(std::span(&file, 1), read).front();
      if (FindName(name, std::span(&record.names, 1), sought)) {
        return record;
      }
    }
  }
  return FindRecord(name, CompiledRecords(files, read), read, sought);
}

}  // namespace fourpiles
