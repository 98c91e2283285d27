#include <forebay/array/require.h>

namespace forebay {

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (int axis = 0; axis < dims.rank; ++axis)
    text += fmt::format("{}{}", axis > 0 ? ", " : "", dims[axis]);
  return text + (dims.rank == 1 ? ",)" : ")");
}

std::string to_string(Device device) {
  return device.is_cuda() ? fmt::format("cuda:{}", device.index) : "cpu";
}

}  // namespace forebay
