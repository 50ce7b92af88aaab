#pragma once

// The networks that were measured, built of the parts and operators that every architecture is
// built of: plain GPT-2, Llama, Mixtral, BERT, ViT, ResNet, U-Net and LSTM, small, with every
// switch of a measured configuration.

#include "base/json.h"
#include "model/network.h"

namespace fourpiles::truth {

// One row of the measurements, as it was written.
struct Row {
  const Json& json;

  const Json& Config() const { return *json.Find("cfg"); }
  std::string Text(std::string_view key) const;     // of the row; "" where null
  std::int64_t Number(std::string_view key) const;  // of the configuration; 0 where absent
  std::string Setting(std::string_view key) const;  // of the configuration; "" where absent or null
  bool Flag(std::string_view key) const;            // of the configuration
  bool Positive(std::string_view key) const;        // a probability that is not 0
};

Network NetworkOf(const Row& row);

// Parts of NetworkOf, by file.
Network Gpt2(const Row& row);
Network Llama(const Row& row);  // and moe
Network Bert(const Row& row);
Network Vit(const Row& row);
Network ResNet(const Row& row);
Network UNet(const Row& row);
Network Lstm(const Row& row);

}  // namespace fourpiles::truth
