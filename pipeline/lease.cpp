#include <forebay/pipeline/lease.h>

#include <algorithm>

#include <forebay/array/require.h>
#include <forebay/pipeline/batch.h>
#include <forebay/pipeline/mistakes.h>

namespace forebay {

BatchFields::BatchFields(const Plan& plan) : rows(plan.batch_size) {
  const MemoryMap map = map_memory(plan);
  ids_offset = map.ids_offset;
  for (const PlanOutput& output : plan.outputs) {
    const PlanValue& value = plan.values[static_cast<std::size_t>(output.value)];
    names.push_back(output.name);
    views.push_back({nullptr, value.spec.dtype, value.device, value.spec.shape,
                     dense_strides(value.spec.shape)});
    places.push_back(map.places[static_cast<std::size_t>(output.value)]);
  }
}

Lease::Lease(SlotPool::Loan loan, std::shared_ptr<SlotPool> pool,
             std::shared_ptr<const BatchFields> fields, BatchPosition position,
             std::int64_t real_rows)
    : loan_(std::move(loan)),
      pool_(std::move(pool)),
      fields_(std::move(fields)),
      position_(position),
      real_rows_(real_rows) {
  pool_->hold();
}

Lease::~Lease() {
  pool_->unhold();
  SlotPool::release(std::move(loan_), consumers_);
}

ArrayView Lease::view(std::size_t field) const {
  const MemoryMap::Place& place = fields_->places[field];
  const Array& block = place.block == MemoryMap::Block::slot_device ? loan_->device : loan_->host;
  ArrayView view = fields_->views[field];
  view.data = block.as<char>() + place.offset;
  return view;
}

const std::int64_t* Lease::sample_ids() const {
  return reinterpret_cast<const std::int64_t*>(loan_->host.as<char>() + fields_->ids_offset);
}

void Lease::add_consumer(const Stream& stream) {
  stream.wait(loan_->ready);
  const std::lock_guard lock(mutex_);
  if (std::find(consumers_.begin(), consumers_.end(), stream) == consumers_.end())
    consumers_.push_back(stream);
}

namespace {

const Lease& content(const std::shared_ptr<Lease>& lease) {
  FOREBAY_REQUIRE(lease != nullptr, invalid, "the batch is empty; take one from `Pipeline::next`.");
  return *lease;
}

}  // namespace

Array Batch::operator[](std::string_view name) const {
  const auto& names = content(lease_).fields().names;
  const auto found = std::find(names.begin(), names.end(), name);
  FOREBAY_REQUIRE(found != names.end(), invalid, "the batch has no field `{}`; it has {}.{}", name,
                  quoted(names), did_you_mean(std::string(name), names));
  return Array(lease_->view(static_cast<std::size_t>(found - names.begin())), lease_);
}

const std::vector<std::string>& Batch::names() const { return content(lease_).fields().names; }
std::int64_t Batch::rows() const { return content(lease_).fields().rows; }
std::int64_t Batch::real_rows() const { return content(lease_).real_rows(); }
std::int64_t Batch::epoch() const { return content(lease_).position().epoch; }
std::int64_t Batch::step() const { return content(lease_).position().step; }

std::span<const std::int64_t> Batch::sample_ids() const {
  return {content(lease_).sample_ids(), static_cast<std::size_t>(rows())};
}

void Batch::record_stream(const Stream& stream) const {
  content(lease_);
  lease_->add_consumer(stream);
}

}  // namespace forebay
