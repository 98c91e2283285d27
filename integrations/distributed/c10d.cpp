#include <forebay/integrations/distributed/c10d.h>

// LibTorch is built with Gloo, but says so to its own files only.
#define USE_C10D_GLOO
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>

#include <forebay/array/require.h>

namespace forebay::distributed {
namespace {

/// The store refuses messages of 8 MiB.
constexpr std::size_t kPiece = 4 << 20;

using Bytes = std::vector<std::uint8_t>;

/// What `call` returns. Errors: io for what c10d and Gloo throw, beginning with `what`.
template <class Call>
auto guarded(const std::string& what, const Call& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    fail(ErrorKind::io, "{}: {}", what, text.substr(0, text.find('\n')));
  } catch (const std::exception& error) {
    fail(ErrorKind::io, "{}: {}", what, error.what());
  }
}

std::string piece_key(const std::string& key, std::size_t piece) {
  return fmt::format("{}#{}", key, piece);
}

}  // namespace

struct Store::Impl {
  std::string name;  ///< for messages
  c10::intrusive_ptr<c10d::Store> store;
};

Store::Store(const Environment& environment, Role role, std::chrono::milliseconds timeout)
    : impl_(std::make_unique<Impl>()) {
  impl_->name = fmt::format("the store at {}:{}", environment.address, environment.port);
  c10d::TCPStoreOptions options;
  options.port = environment.port;
  options.isServer = role == Role::keeper;
  options.waitWorkers = false;
  options.timeout = timeout;
  impl_->store = guarded(impl_->name, [&] {
    const auto store = c10::make_intrusive<c10d::TCPStore>(environment.address, options);
    return c10::make_intrusive<c10d::PrefixStore>("forebay/" + environment.run, store);
  });
}

Store::~Store() = default;

void Store::set(const std::string& key, const std::string& text) {
  guarded(impl_->name, [&] {
    const std::size_t pieces = std::max<std::size_t>((text.size() + kPiece - 1) / kPiece, 1);
    // The first piece last: who sees it finds the others.
    for (std::size_t piece = pieces; piece-- > 0;) {
      const std::string part = text.substr(piece * kPiece, kPiece);
      if (piece > 0) {
        impl_->store->set(piece_key(key, piece), Bytes(part.begin(), part.end()));
      } else {
        const std::string first = fmt::format("{}:{}", pieces, part);
        impl_->store->set(key, Bytes(first.begin(), first.end()));
      }
    }
  });
}

bool Store::has(const std::string& key) {
  return guarded(impl_->name, [&] { return impl_->store->check({key}); });
}

namespace {

/// Splits "3:text": how many pieces there are, and the first. A counter is one piece.
std::pair<std::size_t, std::string> first_piece(const Bytes& bytes) {
  const auto colon = std::find(bytes.begin(), bytes.end(), ':');
  if (colon == bytes.end()) return {1, {}};
  return {std::stoul(std::string(bytes.begin(), colon)), std::string(colon + 1, bytes.end())};
}

}  // namespace

std::string Store::get(const std::string& key) {
  return guarded(impl_->name, [&] {
    auto [pieces, text] = first_piece(impl_->store->get(key));
    for (std::size_t piece = 1; piece < pieces; ++piece) {
      const Bytes bytes = impl_->store->get(piece_key(key, piece));
      text.append(bytes.begin(), bytes.end());
    }
    return text;
  });
}

std::vector<std::string> Store::get(const std::vector<std::string>& keys) {
  return guarded(impl_->name, [&] {
    std::vector<std::string> texts;
    for (const Bytes& bytes : impl_->store->multiGet(keys))
      texts.push_back(first_piece(bytes).second);
    return texts;
  });
}

std::int64_t Store::add(const std::string& key, std::int64_t number) {
  return guarded(impl_->name, [&] { return impl_->store->add(key, number); });
}

void Store::erase(const std::string& key) {
  guarded(impl_->name, [&] {
    const std::size_t pieces = first_piece(impl_->store->get(key)).first;
    for (std::size_t piece = 1; piece < pieces; ++piece)
      impl_->store->deleteKey(piece_key(key, piece));
    impl_->store->deleteKey(key);
  });
}

struct Group::Impl {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
};

Group::Group(Store& store, const Environment& environment) : impl_(std::make_unique<Impl>()) {
  impl_->group = guarded("Gloo", [&] {
    using Gloo = c10d::ProcessGroupGloo;
    // Who is gone is found out by the ranks' watch and by the connection's end; a slow rank is not.
    const auto options = Gloo::Options::create(std::chrono::hours(24));
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
    const bool here = environment.address == "localhost" || environment.address == "127.0.0.1";
    options->devices.push_back(interface != nullptr ? Gloo::createDeviceForInterface(interface)
                               : here               ? Gloo::createDeviceForHostname("127.0.0.1")
                                                    : Gloo::createDefaultDevice());
    const auto prefixed = c10::make_intrusive<c10d::PrefixStore>("gloo", store.impl_->store);
    return c10::make_intrusive<Gloo>(prefixed, environment.rank, environment.size, options);
  });
}

Group::~Group() = default;

namespace {

/// The gradients of `parameters` times `factor`, one behind the other, on the host.
at::Tensor flat_gradients(const std::vector<at::Tensor>& parameters, double factor) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor& gradient = parameter.grad();
    // No product with 0: the gradient of a mean over no rows is NaN.
    const bool counts = gradient.defined() && factor > 0;
    flat.push_back(counts ? gradient.reshape(-1) * factor : at::zeros_like(parameter).reshape(-1));
  }
  return at::cat(flat).cpu();
}

void set_gradients(const std::vector<at::Tensor>& parameters, const at::Tensor& flat) {
  const at::Tensor there = flat.to(parameters.front().device());
  std::int64_t begin = 0;
  for (const at::Tensor& parameter : parameters) {
    const std::int64_t count = parameter.numel();
    const at::Tensor part = there.narrow(0, begin, count).view(parameter.sizes());
    if (parameter.grad().defined()) {
      parameter.grad().copy_(part);
    } else {
      parameter.mutable_grad() = part.clone();
    }
    begin += count;
  }
}

}  // namespace

void Group::average_gradients(const std::vector<at::Tensor>& parameters, double weight) {
  const c10::NoGradGuard no_grad;
  std::map<std::pair<at::ScalarType, std::string>, std::vector<at::Tensor>> alike;
  double count = 0;
  for (const at::Tensor& parameter : parameters) {
    alike[{parameter.scalar_type(), parameter.device().str()}].push_back(parameter);
    count += static_cast<double>(parameter.numel());
  }
  const auto sum = [&](const at::Tensor& tensor) {
    guarded("average_gradients", [&] {
      std::vector<at::Tensor> tensors{tensor};
      impl_->group->allreduce(tensors)->wait();
    });
  };
  // By Cauchy and Schwarz all counts are equal when the square of their sum is this.
  const at::Tensor totals = at::tensor({weight, 1.0, count, count * count}, at::kDouble);
  sum(totals);
  const double* total = totals.const_data_ptr<double>();
  FOREBAY_REQUIRE(total[2] * total[2] == total[1] * total[3], invalid,
                  "average_gradients: this rank has {} parameters, and others have more or fewer; "
                  "every rank must train the same model.",
                  count);
  FOREBAY_REQUIRE(total[0] > 0, invalid,
                  "average_gradients: the weights of all ranks are 0; at least one must be more.");
  for (const auto& [kind, tensors] : alike) {
    const at::Tensor flat = flat_gradients(tensors, weight / total[0]);
    sum(flat);
    set_gradients(tensors, flat);
  }
}

}  // namespace forebay::distributed
