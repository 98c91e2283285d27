#include <forebay/array/cuda/graph.h>

#include <mutex>
#include <utility>

#include <forebay/array/cuda/capture.h>
#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/event.h>
#include <forebay/array/require.h>

namespace forebay::cuda {
namespace {

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using GraphHandle = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

class CapturedGraph final : public Graph {
 public:
  CapturedGraph(cudaGraph_t graph, int device, Owners owners)
      : device_(device),
        owners_(std::move(owners)),
        last_(device, cudaEventDisableTiming) {  // one to sleep on costs the GPU 1.5 us a replay
    check(cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
  }

  ~CapturedGraph() override {
    try {
      last_.wait();  // the replays under way use the executable and the owners
      const DeviceGuard guard(device_);
      cudaGraphExecDestroy(executable_);
    } catch (const Error&) {  // the process is ending, or the device has failed
    }
  }

  void launch(const Stream& stream) const override {
    FOREBAY_REQUIRE(stream.device() == Device::cuda(device_), invalid,
                    "a graph of {} cannot be launched on a stream of {}.",
                    to_string(Device::cuda(device_)), to_string(stream.device()));
    const DeviceGuard guard(device_);
    const std::lock_guard lock(
        mutex_);  // CUDA runs replays one after the other: the last one ends last
    check(cudaGraphLaunch(executable_, native(stream)), "cudaGraphLaunch");
    last_.record(native(stream));
  }

 private:
  int device_;
  Owners owners_;
  CudaPoint last_;
  cudaGraphExec_t executable_ = nullptr;
  mutable std::mutex mutex_;
};

/// A capture in progress on one stream; abandoned when it is not finished.
class Capture {
 public:
  explicit Capture(cudaStream_t stream)
      : stream_(stream), outer_(std::exchange(captured_owners, &owners)) {
    const cudaError_t status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (status == cudaSuccess) return;
    captured_owners = outer_;
    fail_call(status, "cudaStreamBeginCapture");
  }
  ~Capture() {
    captured_owners = outer_;
    if (stopped_) return;
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream_, &graph) != cudaSuccess) cudaGetLastError();
    GraphHandle abandoned(graph);
  }
  GraphHandle finish() {
    stopped_ = true;
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    return GraphHandle(graph);
  }

  Owners owners;

 private:
  cudaStream_t stream_;
  Owners* outer_;
  bool stopped_ = false;
};

}  // namespace

std::shared_ptr<Graph> Graph::capture(const Stream& stream, const std::function<void()>& enqueue) {
  FOREBAY_REQUIRE(stream.device().is_cuda(), invalid,
                  "a graph is captured from a CUDA stream; this one is on cpu.");
  const int device = stream.device().index;
  const DeviceGuard guard(device);
  Capture capture(native(stream));
  enqueue();
  const GraphHandle graph = capture.finish();
  return std::make_shared<CapturedGraph>(graph.get(), device, std::move(capture.owners));
}

void relax_capture_mode_of_this_thread() {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
}

Event create_timing_event(Device device) {
  require_device(device);
  return Event(std::make_shared<CudaEvent>(device.index, cudaEventBlockingSync));
}

float elapsed_ms(const Event& begin, const Event& end) {
  const DeviceGuard guard(device_in_use());
  float ms = 0;
  check(cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(begin.native()),
                             static_cast<cudaEvent_t>(end.native())),
        "cudaEventElapsedTime");
  return ms;
}

}  // namespace forebay::cuda
