#include "serve.h"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <optional>
#include <ostream>

#include <nlohmann/json.hpp>

#include <forebay/array/parallel.h>
#include <forebay/array/require.h>
#include <forebay/ops/matmul/matmul.h>
#include "kit/floor.h"
#include "kit/timing.h"

namespace forebay::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Enough of a result to tell a right one from a wrong one.
constexpr std::int64_t kExpected = 1 << 22;

std::string_view name_of(Compute compute) {
  return names_of(compute)[static_cast<std::size_t>(compute)];
}

/// The first elements of an output as f64 on the host, flat.
Array first_numbers(const Array& output, const Context& context) {
  const Array flat =
      output.reshape({output.count()}).slice(0, 0, std::min(output.count(), kExpected));
  const Array numbers = cast(flat, {.dtype = Dtype::f64}, context);
  const Array host = copy_to(numbers, {context.stream, pinned_memory(), pinned_memory()});
  context.stream.synchronize();
  return host;
}

std::string put(const std::string& folder, const std::string& name, const Array& array) {
  const std::string path = fmt::format("{}/{}.npy", folder, name);
  write_npy(path, array.view());
  return path;
}

/// The same for rows on the same data, which peers then load once.
std::string data_path(const std::string& folder, const Data& data) {
  std::string extents;
  for (const std::int64_t extent : data.shape)
    extents += fmt::format("_{}", extent);
  return fmt::format("{}/x_{}{}_from_{}_to_{}.npy", folder, name_of(data.dtype), extents, data.low,
                     data.high);
}

class Server {
 public:
  Server(Size size, Device device) : size_(size), context_(Context::create(device)) {}

  Json answer(const Json& request) {
    const std::string what = request.at("do");
    if (what == "versions") return versions();
    if (what == "rate") return rate(request.at("compute"));
    if (what == "open") return open(request.at("row"));
    if (what == "close") {
      open_.reset();
      return Json::object();
    }
    if (!open_) fail(ErrorKind::invalid, "`{}` needs an open row.", what);
    if (what == "save") return save(request.at("folder"));
    const int runs = request.at("runs");
    if (what == "time") {
      Program& program = *open_->program;
      return {{"ms", time_ms(program.stream(), runs, [&] { program.run(); })}};
    }
    if (what == "floor") return {{"ms", open_->floor.time_ms(runs)}};
    fail(ErrorKind::invalid, "there is no request `{}`.", what);
  }

 private:
  struct Open {
    std::string id;
    Work work;
    std::unique_ptr<Program> program;
    CopyFloor floor;
  };

  Json versions() const {
    int threads = 0;
    const Stream cpu = Stream::create(Device::cpu());
    cpu.enqueue([&] { threads = parallel_threads(); });
    cpu.synchronize();
    return {{"forebay", FOREBAY_VERSION},
            {"cuda_toolkit", FOREBAY_CUDA_VERSION},
            {"device", to_string(context_.device())},
            {"threads", threads}};
  }

  Json rate(const std::string& name) const {
    const auto names = names_of(Compute{});
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail(ErrorKind::invalid, "there is no compute `{}`.", name);
    const std::int64_t side = size_ == Size::gpu ? 8192 : size_ == Size::cpu ? 2048 : 64;
    return {
        {"flops_per_ms", matrix_rate(static_cast<Compute>(found - names.begin()), side, context_)}};
  }

  Json open(const std::string& id) {
    open_.reset();
    Work work = row(id).work(size_);
    auto program = warm_program(plan_of(row(id), size_, context_.device()));
    Json steps = Json::array();
    for (const PlanStep& step : program->plan().steps) {
      if (step.kind != PlanStep::Kind::load) steps.push_back(step.label);
    }
    const double bytes = work.bytes;
    open_.emplace(Open{id, std::move(work), std::move(program), CopyFloor(bytes, context_)});
    return {{"steps", steps}};
  }

  Json save(const std::string& folder) const {
    const Work& work = open_->work;
    Json arrays = Json::object();
    arrays["x"] = data_path(folder, work.data);
    if (!std::filesystem::exists(arrays["x"].get<std::string>()))
      write_npy(arrays["x"], make(work.data).view());
    for (const auto& [name, array] : work.constants)
      arrays[name] = put(folder, open_->id + "_" + name, array);
    const Program& program = *open_->program;
    program.stream().synchronize();
    const Array expected =
        first_numbers(program.output(program.plan().outputs.front().name), context_);
    return {{"arrays", arrays},
            {"expected", put(folder, "expected", expected)},
            {"rtol", work.relative},
            {"atol", work.absolute}};
  }

  const Size size_;
  const Context context_;
  std::optional<Open> open_;
};

}  // namespace

std::shared_ptr<const Plan> plan_of(const Row& row, Size size, Device device) {
  Work work = row.work(size);
  work.pipeline.name(row.id).device(device);
  return compile(std::make_shared<const Spec>(work.pipeline.spec()));
}

std::string describe(const Row& row, Size size) {
  const Work work = row.work(size);
  Json shape = Json::array();
  for (const std::int64_t extent : work.data.shape)
    shape.push_back(extent);
  const Json object = {{"id", row.id},
                       {"text", row.text},
                       {"target", row.target},
                       {"shape", shape},
                       {"dtype", std::string(name_of(work.data.dtype))},
                       {"bytes", work.bytes},
                       {"flops", work.flops},
                       {"compute", std::string(name_of(work.compute))}};
  return object.dump();
}

void serve(std::istream& in, std::ostream& out, Size size, Device device) {
  Server server(size, device);
  for (std::string line; std::getline(in, line);) {
    Json answer;
    try {
      answer = server.answer(Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    out << answer.dump() << std::endl;
  }
}

}  // namespace forebay::bench
