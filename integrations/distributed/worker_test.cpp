// What the ranks of the tests do: distributed_test worker SCENARIO [ARGUMENT...], in the test's folder
// and with the variables of a rank.

#include <forebay/integrations/distributed/distributed.h>

#include <ATen/ATen.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <thread>

#include <gtest/gtest.h>

namespace forebay::distributed {
namespace {

using namespace std::chrono_literals;

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void require(bool holds, const char* what) {
  if (!holds) throw Failed(what);
}

/// Goes on from the state that the leg before left, for so many steps at most, and writes down which
/// samples were its own.
std::int64_t leg(Ranks& ranks, std::int64_t steps, const std::string& name) {
  Pipeline pipeline = ranks.pipeline("train.yaml");
  std::string state;
  if (ranks.is_first()) {
    std::ifstream file("state");
    std::getline(file, state);
  }
  state = ranks.broadcast(state);
  if (!state.empty()) pipeline.restore(state);
  ranks.check(pipeline);
  std::ofstream ids("ids." + name + "." + std::to_string(ranks.rank()));
  std::int64_t done = 0;
  pipeline.start_epoch(pipeline.position().epoch);
  while (done < steps) {
    const auto batch = pipeline.next();
    if (!batch) break;
    for (std::int64_t row = 0; row < batch->real_rows(); ++row)
      ids << batch->sample_ids()[static_cast<std::size_t>(row)] << '\n';
    ++done;
  }
  if (ranks.is_first()) std::ofstream("state") << pipeline.state() << '\n';
  const auto metrics = ranks.gather(metrics_of(pipeline.stats()));
  if (ranks.is_first()) std::cout << to_text(metrics);
  std::cout << "rank " << ranks.rank() << ": " << done << " of " << pipeline.steps_per_epoch()
            << " steps\n";
  return done;
}

void epoch(Ranks& ranks, const std::vector<std::string>&) { leg(ranks, 1000, "0"); }
void some_steps(Ranks& ranks, const std::vector<std::string>& arguments) {
  leg(ranks, std::stoi(arguments[0]), arguments[1]);
}

/// Rank 1 has another file.
void differ(Ranks& ranks, const std::vector<std::string>&) {
  ranks.pipeline(ranks.rank() == 1 ? "other.yaml" : "train.yaml");
}

void shardless(Ranks& ranks, const std::vector<std::string>&) {
  ranks.check(Pipeline::from_file("train.yaml"));
}

/// A pipeline whose second batch never comes.
Pipeline stuck() {
  const auto read = [](std::int64_t index, std::span<const ArrayView>) {
    while (index > 2)
      std::this_thread::sleep_for(1s);
  };
  return Pipeline::build()
      .source(callback_source(100, {{"x", Dtype::f32, {}}}, read))
      .batch_size(2)
      .prefetch_queue_depth(1)
      .device(Device::cpu())
      .create();
}

/// The last rank, or rank 0, ends in one way, while the others wait in another.
void die(Ranks& ranks, const std::vector<std::string>& arguments) {
  const std::string how = arguments[0], where = arguments[1];
  const int who = arguments[2] == "first" ? 0 : ranks.size() - 1;
  at::Tensor parameter = at::zeros({1000}).requires_grad_();
  ranks.average_gradients({parameter}, 1);
  ranks.barrier();
  if (ranks.rank() == who) {
    if (how == "kill") std::raise(SIGKILL);
    if (how == "stop") std::raise(SIGSTOP);
    if (how == "exit") std::_Exit(0);
    throw Failed("what the rank itself says");
  }
  Pipeline pipeline = stuck();
  if (where == "gather") ranks.gather("");
  if (where == "gradients") ranks.average_gradients({parameter}, 1);
  if (where == "data")
    while (pipeline.next()) {
    }
  while (true)
    std::this_thread::sleep_for(1s);
}

void leave(Ranks& ranks, const std::vector<std::string>&) {
  if (ranks.rank() > 0) ranks.barrier();
}

void mix_calls(Ranks& ranks, const std::vector<std::string>&) {
  if (ranks.rank() == 0) {
    ranks.broadcast("");
  } else {
    ranks.barrier();
  }
}

void texts(Ranks& ranks) {
  const auto text_of = [](int rank) {  // more than the store takes at once
    return std::string((rank + 1) * 5'000'000, static_cast<char>('a' + rank));
  };
  for (int turn = 0; turn < 2; ++turn) {
    const auto all = ranks.gather(text_of(ranks.rank()));
    const auto first = ranks.collect(text_of(ranks.rank()));
    require(all.size() == static_cast<std::size_t>(ranks.size()), "gather: how many");
    require(first.size() == (ranks.is_first() ? all.size() : 0), "collect: how many");
    for (int rank = 0; rank < ranks.size(); ++rank)
      require(all[static_cast<std::size_t>(rank)] == text_of(rank), "gather: what");
    require(!ranks.is_first() || first == all, "collect: what");
    require(ranks.broadcast(text_of(ranks.rank())) == text_of(0), "broadcast");
    ranks.barrier();
  }
}

void exchange(Ranks& ranks, const std::vector<std::string>&) {
  texts(ranks);
  const double rank = ranks.rank();
  const auto got = ranks.gather(Metrics{{"x", rank * rank - rank}, {"inf", 1 / (1 - rank)}});
  const auto is = [](const RankMetric& metric, double sum, double min, int min_rank, double max,
                     int max_rank) {
    return metric.sum == sum && metric.min == min && metric.min_rank == min_rank &&
           metric.max == max && metric.max_rank == max_rank;
  };
  const double inf = std::numeric_limits<double>::infinity();
  require(is(got[0], 2, 0, 0, 2, 2) && is(got[1], inf, -1, 2, inf, 1), "metrics");
  ranks.gather(ranks.rank() == 1 ? Metrics{{"y", 0}} : Metrics{{"x", 0}});
}

void gradients(Ranks& ranks, const std::vector<std::string>& arguments) {
  const at::Device device(arguments[0] == "cuda" ? at::kCUDA : at::kCPU);
  const int rank = ranks.rank();
  const auto parameter = [&](at::ScalarType type, double value) {
    at::Tensor made = at::zeros({2, 3}, at::device(device).dtype(type)).requires_grad_();
    if (!std::isnan(value) || rank == 2) made.mutable_grad() = at::full_like(made, value);
    return made;
  };
  // Ranks 0, 1 and 2 weigh 1, 3 and 0; what rank 2 has does not count.
  const double nan = std::nan("");
  const std::vector<at::Tensor> parameters = {
      parameter(at::kFloat, rank == 0   ? 4
                            : rank == 1 ? 8
                                        : nan),
      parameter(at::kDouble, rank == 0   ? 1
                             : rank == 1 ? -1
                                         : nan),
      parameter(at::kFloat, rank == 0 ? 2 : nan)};  // rank 1 has no gradient there
  ranks.average_gradients(parameters, rank == 0 ? 1 : rank == 1 ? 3 : 0);
  const double wanted[] = {7, -0.5, 0.5};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor gradient = parameters[i].grad();
    require(gradient.device().type() == device.type(), "device");
    require(gradient.cpu().equal(at::full({2, 3}, wanted[i], gradient.scalar_type())), "gradient");
  }
  // Sums of many addends: the same bits on every rank.
  at::Tensor large = at::zeros({10'000}, at::device(device)).requires_grad_();
  at::manual_seed(rank);
  large.mutable_grad() = at::randn_like(large);
  ranks.average_gradients({large}, 1);
  const at::Tensor bytes = large.grad().cpu();
  const auto all = ranks.gather(
      {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.nbytes())});
  for (const std::string& theirs : all)
    require(theirs == all[0], "bits");
  at::Tensor other = at::zeros({rank == 0 ? 5 : 6}, at::device(device)).requires_grad_();
  ranks.average_gradients({other}, 1);
}

int work(const std::vector<std::string>& arguments) {
  const std::map<std::string, std::function<void(Ranks&, const std::vector<std::string>&)>> all = {
      {"epoch", epoch},
      {"steps", some_steps},
      {"differ", differ},
      {"shardless", shardless},
      {"die", die},
      {"leave", leave},
      {"calls", mix_calls},

      {"exchange", exchange},
      {"gradients", gradients},
      {"nothing", [](Ranks&, const auto&) {}}};
  try {
    Ranks ranks = join({.timeout = 2s, .start_timeout = 20s});
    all.at(arguments[0])(ranks, {arguments.begin() + 1, arguments.end()});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

}  // namespace
}  // namespace forebay::distributed

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "worker")
    return forebay::distributed::work({argv + 2, argv + argc});
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
