#pragma once

// Internal.

#include <forebay/pipeline/fit/state.h>

namespace forebay::fit_detail {

/// The digits of a number in base 2^32, each a sum of its own.
Natural joined(const Wide* digits, int count);

struct Moments {
  double mean = 0, std = 0;  ///< of the finite values, rounded once; NaN without one
};
Moments moments(const Channel& channel, const TallyBins& bins);

}  // namespace forebay::fit_detail
