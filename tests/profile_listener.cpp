// What a profiler does: NVTX loads this library and is given functions to call. Remembers ranges.
#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

std::mutex mutex;
std::vector<std::string> labels;

nvtxDomainHandle_t create(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(new std::string(name));
}
int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const std::lock_guard lock(mutex);
  labels.push_back(*reinterpret_cast<const std::string*>(domain) + ": " + event->message.ascii);
  return 0;
}
int pop(nvtxDomainHandle_t) {
  const std::lock_guard lock(mutex);
  labels.emplace_back("end");
  return 0;
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of) {
  const auto& calls = *static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (calls.GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  const auto set = [&](int id, auto function) {
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, create);
  set(NVTX_CBID_CORE2_DomainRangePushEx, push);
  set(NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}

/// What was heard since the last call.
extern "C" void take_labels(std::vector<std::string>& into) {
  const std::lock_guard lock(mutex);
  into = std::exchange(labels, {});
}
