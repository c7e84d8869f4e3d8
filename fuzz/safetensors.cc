#include "weights/safetensors.h"

#include <span>

#include "entry.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = linnet::SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "fuzz.safetensors");
  if (!file.ok()) return 0;
  for (const linnet::SafetensorsTensor& tensor : file->tensors()) touch(tensor.data);
  return 0;
}
