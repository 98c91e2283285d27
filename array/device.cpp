#include <charconv>
#include <cstring>
#include <string_view>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/require.h>
#include <forebay/array/stream_state.h>

namespace forebay {

int cuda_device_count() { return cuda::device_count(); }
const char* cuda_absence_reason() { return cuda::absence_reason(); }

std::string missing_device_text(Device device, int count, const char* reason) {
  const std::string name = to_string(device);
  if (count == 0) return fmt::format("device `{}` is not here: {}; use cpu.", name, reason);
  if (count == 1)
    return fmt::format("device `{}` is not here: 1 CUDA device found; use cuda:0 or cpu.", name);
  return fmt::format(
      "device `{}` is not here: {} CUDA devices found; use cuda:0 to cuda:{}, or cpu.", name, count,
      count - 1);
}

void require_device(Device device) {
  if (!device.is_cuda()) return;
  const int count = cuda_device_count();
  if (0 <= device.index && device.index < count) return;
  fail(ErrorKind::unsupported, "{}", missing_device_text(device, count, cuda_absence_reason()));
}

Device device_from_name(const char* text, Presence presence) {
  const std::string_view name = text;
  if (name == "cpu") return Device::cpu();
  if (name == "auto") return cuda_device_count() > 0 ? Device::cuda() : Device::cpu();
  int index = 0;
  bool valid = name == "cuda";
  if (constexpr std::string_view prefix = "cuda:"; name.starts_with(prefix)) {
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, index);
    valid = error == std::errc() && rest == end && index >= 0;
  }
  FOREBAY_REQUIRE(valid, invalid, "device `{}` is not known; use auto, cpu, cuda or cuda:N.", name);
  const Device device = Device::cuda(index);
  if (presence == Presence::required) require_device(device);
  return device;
}

}  // namespace forebay
