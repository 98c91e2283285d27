// Compiles the device code of every op for every architecture we support, on a machine
// without a GPU.
#include "kit/kit.h"

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/cuda_source.h>
#include <forebay/ops/registry.h>
#include <forebay/pipeline/config/config.h>

namespace forebay {
namespace {

class NoMaterialise final : public Materialise {
  expr::Expr operator()(const expr::Expr& expression) override {
    return expr::Expr::leaf(0, expression.dtype(), expression.shape());
  }
};

void load(const expr::Program& program) {
  const auto source = expr::cuda_source(program, expr::cuda_walk(program));
  cuda::load_kernel({expr::kKernelName, source.text, {}}, Device::cuda());
}

class Kernels : public testing::TestWithParam<std::string> {};

TEST_P(Kernels, CompileForEveryArchitecture) {
  const OpEntry& entry = find_op(GetParam());
  const Op op = parse_stage(entry.def.example).op;
  // The context of a CPU: preparing must load kernels and ask nothing else of CUDA.
  const Context context = kit::context(Device::cpu());
  const cuda::CompileOnly compile_only({80, 90, 100, 120});
  int prepared = 0;
  for (const Dtype dtype : kAllDtypes) {
    for (const Dims& shape : {Dims{64}, Dims{8, 8}, Dims{3, 8, 8}, Dims{2, 8, 8, 3}}) {
      std::vector<ArraySpec> inputs(entry.def.inputs.size(), ArraySpec{dtype, shape});
      std::vector<ArraySpec> outputs;
      try {
        outputs = op.infer(inputs);
      } catch (const Error&) {
        continue;
      }
      if (entry.def.draws != 0) {
        inputs.push_back({Dtype::i64, {shape[0]}});
        inputs.push_back({Dtype::i64, {3}});
      }
      std::vector<expr::Expr> leaves;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        leaves.push_back(
            expr::Expr::leaf(static_cast<int>(i), inputs[i].dtype, inputs[i].shape));
      }
      NoMaterialise materialise;
      if (const auto lowered = op.lower(leaves, materialise); !lowered.empty()) {
        load(expr::compile(lowered));
      } else if (entry.cuda != nullptr) {
        entry.cuda(op, {inputs, outputs}, context);
      }
      ++prepared;
      break;  // one shape for each dtype: the text depends on the dtype
    }
  }
  EXPECT_GT(prepared, 0);
  RecordProperty("kernels", compile_only.compiled());
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const OpEntry& entry : registry())
    all.emplace_back(entry.def.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ops, Kernels, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace forebay
