#include <forebay/array/cuda/range.h>

#include <fmt/core.h>
#include <nvtx3/nvToolsExt.h>

namespace forebay::cuda {
namespace {

/// Null when no profiler listens.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t found = nvtxDomainCreateA("forebay");
  return found;
}

}  // namespace

Range::Range(std::string_view label, std::int64_t epoch, std::int64_t batch) {
  if (domain() == nullptr) return;
  char text[128];  // nothing is allocated while batches flow
  const auto [end, size] =
      fmt::format_to_n(text, sizeof text - 1, "{:.80}, epoch {}, batch {}", label, epoch, batch);
  *end = '\0';
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text;
  nvtxDomainRangePushEx(domain(), &event);
}

Range::~Range() {
  if (domain() != nullptr) nvtxDomainRangePop(domain());
}

}  // namespace forebay::cuda
