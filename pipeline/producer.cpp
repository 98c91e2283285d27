#include <forebay/pipeline/producer.h>

#include <algorithm>
#include <chrono>

#include <forebay/array/cuda/range.h>
#include <forebay/array/require.h>
#include <forebay/pipeline/failure.h>

namespace forebay {
namespace {

/// Ends the reading of a batch that nobody waits for any more.
struct Unwanted {};

std::string batch_title(const BatchPosition& position) {
  return fmt::format("epoch {}, batch {}", position.epoch, position.step);
}

/// Runs what must not throw: in a destructor, or while another failure is on its way.
template <class F>
void quietly(F&& action) noexcept {
  try {
    action();
  } catch (...) {
  }
}

/// Blocks that hold a batch of any plan.
MemoryMap largest(std::span<const std::shared_ptr<const Plan>> plans) {
  MemoryMap map = map_memory(*plans[0]);
  for (const auto& plan : plans.subspan(1)) {
    const MemoryMap other = map_memory(*plan);
    for (const auto bytes : {&MemoryMap::slot_host, &MemoryMap::slot_device,
                             &MemoryMap::shared_host, &MemoryMap::shared_device}) {
      map.*bytes = std::max(map.*bytes, other.*bytes);
    }
  }
  return map;
}

}  // namespace

Producer::Producer(std::vector<std::shared_ptr<const Plan>> plans, const Options& options,
                   Feed& feed)
    : plans_(std::move(plans)),
      plan_(plans_[0]),
      feed_(feed),
      rows_(plan_),
      copies_later_(
          std::any_of(plan_->steps.begin(), plan_->steps.end(),
                      [](const PlanStep& step) { return step.kind == PlanStep::Kind::copy; })),
      machine_(make_machine(*plan_, largest(plans_), options)),
      runners_(plans_.size()),
      reader_(Stream::create(Device::cpu(), plan_->spec->num_threads)) {
  const MemoryMap map = largest(plans_);
  const bool gpu = plan_->device.is_cuda();
  if (gpu) copy_ = Stream::create(plan_->device);
  pool_ = std::make_shared<SlotPool>(
      SlotPool::Settings{.host_bytes = map.slot_host,
                         .device_bytes = map.slot_device,
                         .host_memory = gpu ? pinned_memory() : machine_.cpu.memory,
                         .device_memory = gpu ? machine_.gpu->memory : nullptr,
                         .ahead = plan_->slots() - 1,
                         .poison = options.poison},
      gpu ? *copy_ : machine_.cpu.stream);
  reader_.enqueue([this] { loop(); });
}

Producer::~Producer() {
  pool_->close();
  quietly([&] { reader_.synchronize(); });
  quietly([&] { machine_.cpu.stream.synchronize(); });
  if (copy_) quietly([&] { copy_->synchronize(); });
  if (machine_.gpu) quietly([&] { machine_.gpu->stream.synchronize(); });
}

void Producer::loop() noexcept {
  if (copy_) quietly([] { cuda::relax_capture_mode_of_this_thread(); });
  for (;;) {
    SlotPool::Loan loan;
    std::exception_ptr failure;
    try {
      loan = pool_->acquire();
      if (!loan) return;
    } catch (...) {
      failure = std::current_exception();
    }
    const std::optional<Ticket> ticket = feed_.take();
    if (!ticket) return;
    if (failure != nullptr) {
      feed_.fail(*ticket, failure);
    } else {
      produce(*ticket, std::move(loan));
    }
  }
}

/// On the way out the loan brings the slot back to the pool, unless it has gone on with the batch.
void Producer::produce(const Ticket& ticket, SlotPool::Loan loan) {
  try {
    Runner& runner = runner_for(plan_->sampler->rows(ticket.position.cursor));
    Losses losses = fill(ticket, *loan, runner);
    // With CPU steps the batch is completed by the CPU stream, while the next one is read here.
    if (!runner.plan().has_steps_on(DeviceKind::cpu)) {
      finish(ticket, loan, runner, std::move(losses));
      return;
    }
    auto shared = std::make_shared<SlotPool::Loan>(std::move(loan));
    machine_.cpu.stream.enqueue([this, ticket, shared, &runner, losses = std::move(losses)] {
      try {
        finish(ticket, *shared, runner, losses);
      } catch (...) {
        feed_.fail(ticket, std::current_exception());
      }
    });
  } catch (const Unwanted&) {
  } catch (...) {
    feed_.fail(ticket, std::current_exception());
  }
}

Runner& Producer::runner_for(std::int64_t rows) {
  std::size_t number = 0;
  while (plans_[number]->batch_size != rows)
    ++number;
  std::unique_ptr<Runner>& runner = runners_[number];
  if (runner != nullptr) return *runner;
  // Bodies are prepared with streams that another plan's CPU task may be capturing.
  machine_.cpu.stream.synchronize();
  auto made = std::make_unique<Runner>(plans_[number], static_cast<int>(number), machine_);
  const std::lock_guard lock(runners_mutex_);
  runner = std::move(made);
  return *runner;
}

Losses Producer::fill(const Ticket& ticket, Slot& slot, const Runner& runner) {
  try {
    wait_until_writable(slot);
  } catch (...) {
    rethrow_at(batch_title(ticket.position), ErrorKind::device);
  }
  const auto begin = std::chrono::steady_clock::now();
  Losses losses = read(ticket, slot, runner);
  read_ns_ += (std::chrono::steady_clock::now() - begin) / std::chrono::nanoseconds(1);
  if (!copy_) return losses;
  const cuda::Range range("copy", ticket.position.epoch, ticket.position.step);
  try {
    load(slot, runner);
  } catch (...) {
    rethrow_at(
        fmt::format("copy to {}, {}", to_string(plan_->device), batch_title(ticket.position)),
        ErrorKind::device);
  }
  return losses;
}

/// The host memory of the slot. What is on a GPU is waited for there, by `load`.
void Producer::wait_until_writable(Slot& slot) {
  if (copy_) {
    slot.copied.synchronize();
    if (copies_later_) slot.ready.synchronize();
    return;
  }
  for (; slot.releases > 0; --slot.releases) {
    quietly([&] {
      slot.released[slot.releases - 1].second.synchronize();
    });  // a consumer's failure is its own
  }
}

Losses Producer::read(const Ticket& ticket, const Slot& slot, const Runner& runner) {
  const cuda::Range range("read", ticket.position.epoch, ticket.position.step);
  const Plan& plan = runner.plan();
  auto* const position =
      reinterpret_cast<std::int64_t*>(slot.host.as<char>() + runner.map().position_offset);
  auto* const ids = reinterpret_cast<std::int64_t*>(slot.host.as<char>() + runner.map().ids_offset);
  position[0] = ticket.position.epoch;
  position[1] = ticket.position.step;
  position[2] = static_cast<std::int64_t>(plan.spec->seed);
  plan.sampler->indices(ticket.position, ids);

  RowReader::Rows rows{.count = plan.batch_size, .ids = ids, .columns = {}};
  for (int i = 0; i < static_cast<int>(plan.spec->source->columns().size()); ++i)
    rows.columns.push_back(runner.view(i, slot));
  return rows_.read(ticket.position, rows, [&] {
    if (!feed_.wanted(ticket)) throw Unwanted();
  });
}

/// One copy for the whole batch, behind everything that still reads the slot on the GPU.
void Producer::load(Slot& slot, const Runner& runner) {
  copy_->wait(slot.ready);
  for (; slot.releases > 0; --slot.releases)
    copy_->wait(slot.released[slot.releases - 1].second);
  const auto bytes = static_cast<std::int64_t>(runner.map().travelling);
  const auto front = [&](const Array& block) {
    return ArrayView{block.data(), Dtype::u8, block.device(), {bytes}, {1}};
  };
  copy(front(slot.host), front(slot.device), *copy_);
  copy_->record(slot.copied);
  copied_bytes_ += static_cast<std::size_t>(bytes);
}

void Producer::finish(const Ticket& ticket, SlotPool::Loan& loan, Runner& runner, Losses losses) {
  try {
    // With losses that end the run, the values are undefined and nobody will see them.
    if (rows_.allows(losses)) runner.run(*loan, ticket.position);
  } catch (...) {
    // What has been enqueued still uses the slot.
    if (machine_.gpu) quietly([&] { machine_.gpu->stream.record(loan->ready); });
    throw;
  }
  for (const PlanStep& step : runner.plan().steps) {
    if (step.kind != PlanStep::Kind::copy) continue;
    const PlanValue& target = runner.plan().values[static_cast<std::size_t>(step.outputs[0])];
    (target.device.is_cuda() ? copied_bytes_ : returned_bytes_) += bytes_of(target.spec);
  }
  feed_.push({ticket, std::move(loan), runner.fields(), std::move(losses)});
}

void Producer::add_to(Stats& stats) {
  stats.read_ms = static_cast<double>(read_ns_) * 1e-6;
  stats.blocked_ms = pool_->blocked_ms();
  stats.copied_bytes = copied_bytes_;
  stats.returned_bytes = returned_bytes_;
  stats.slots = pool_->slots();
  const std::lock_guard lock(runners_mutex_);
  for (const auto& runner : runners_) {
    if (runner != nullptr) runner->add_to(stats);
  }
}

}  // namespace forebay
