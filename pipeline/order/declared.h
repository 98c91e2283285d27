#pragma once

// Internal: the order that a spec declares.

#include <forebay/pipeline/mistakes.h>
#include <forebay/pipeline/spec.h>

namespace forebay {

/// From shuffle, sampling, subset and split. Null when one of them is wrong, which `mistakes` then
/// says. `spec` has a source, whose size is not negative.
OrderPtr declared_order(const Spec& spec, Mistakes& mistakes);

/// How `order` is cut for the spec's batch size, last-batch policy and shard.
Sampler declared_sampler(const Spec& spec, OrderPtr order);

}  // namespace forebay
