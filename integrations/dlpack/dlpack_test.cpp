#include <forebay/integrations/dlpack/dlpack.h>

#include <dlpack/dlpack.h>

#include <cstring>
#include <thread>

#include "kit/kit.h"

namespace forebay {
namespace {

// One body for both structures.
struct Versioned {
  using Managed = DLManagedTensorVersioned;
  static Managed* to(const Array& array) { return to_dlpack(array); }
};
struct Unversioned {
  using Managed = DLManagedTensor;
  static Managed* to(const Array& array) { return to_dlpack_unversioned(array); }
};
template <class Form>
class Dlpack : public testing::Test {};
using Forms = testing::Types<Versioned, Unversioned>;
TYPED_TEST_SUITE(Dlpack, Forms);

/// A tensor of another library: a few bytes on the host, fields to spoil, and a count of deleter
/// calls.
struct Foreign {
  Foreign() {
    managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      auto* foreign = static_cast<Foreign*>(self->manager_ctx);
      ++foreign->deleted;
      foreign->deleted_on = std::this_thread::get_id();
    };
    managed.dl_tensor = {data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
    for (int i = 0; i < 8; ++i)
      data[i] = static_cast<float>(i);
  }
  Array take() { return from_dlpack(&managed); }

  alignas(16) float data[8];
  std::int64_t shape[2] = {2, 3};
  std::int64_t strides[2] = {3, 1};
  DLManagedTensorVersioned managed{};
  int deleted = 0;
  std::thread::id deleted_on;
};

TYPED_TEST(Dlpack, GoesOutAndComesBackAsTheSameMemory) {
  for (const Dtype dtype : kAllDtypes) {
    for (const Dims& shape :
         {Dims{3, 4}, Dims{}, Dims{0}, Dims{5, 0, 2}, Dims{1, 1}, Dims{2, 2, 2, 2, 2, 2, 2, 2}}) {
      const Array array = kit::random(shape, dtype, 7);
      auto* managed = TypeParam::to(array);
      EXPECT_EQ(managed->dl_tensor.byte_offset, 0u);
      EXPECT_EQ(managed->dl_tensor.ndim, shape.rank);
      EXPECT_NE(managed->dl_tensor.strides, nullptr);
      EXPECT_EQ(managed->dl_tensor.data, array.count() == 0 ? nullptr : array.data());
      const Array back = from_dlpack(managed);
      EXPECT_TRUE(kit::same_bits(back, array));
      EXPECT_EQ(back.strides(), array.strides());
      EXPECT_EQ(back.device(), Device::cpu());
    }
  }
}

TYPED_TEST(Dlpack, GivesEachDtypeItsStandardCode) {
  const struct {
    Dtype dtype;
    int code, bits;
  } wanted[] = {
      {Dtype::boolean, kDLBool, 8}, {Dtype::u8, kDLUInt, 8},      {Dtype::u16, kDLUInt, 16},
      {Dtype::u32, kDLUInt, 32},    {Dtype::u64, kDLUInt, 64},    {Dtype::i8, kDLInt, 8},
      {Dtype::i16, kDLInt, 16},     {Dtype::i32, kDLInt, 32},     {Dtype::i64, kDLInt, 64},
      {Dtype::f16, kDLFloat, 16},   {Dtype::bf16, kDLBfloat, 16}, {Dtype::f32, kDLFloat, 32},
      {Dtype::f64, kDLFloat, 64},   {Dtype::c64, kDLComplex, 64}, {Dtype::c128, kDLComplex, 128}};
  ASSERT_EQ(std::size(wanted), std::size(kAllDtypes));
  for (const auto& [dtype, code, bits] : wanted) {
    auto* managed = TypeParam::to(kit::random({2}, dtype, 1));
    EXPECT_EQ(managed->dl_tensor.dtype.code, code) << name_of(dtype);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, bits) << name_of(dtype);
    EXPECT_EQ(managed->dl_tensor.dtype.lanes, 1) << name_of(dtype);
    managed->deleter(managed);
  }
}

TYPED_TEST(Dlpack, PointsAtTheFirstElementOfAView) {
  const Array array = kit::random({4, 6}, Dtype::f32, 3);
  const Array view = array.slice(0, 1, 4, 2).slice(1, 2, 6).permute({1, 0});
  auto* managed = TypeParam::to(view);
  EXPECT_EQ(managed->dl_tensor.data, array.as<float>() + 6 + 2);
  EXPECT_EQ(managed->dl_tensor.strides[0], 1);
  EXPECT_EQ(managed->dl_tensor.strides[1], 12);
  EXPECT_TRUE(kit::same_bits(from_dlpack(managed), view));
}

TYPED_TEST(Dlpack, SharesMemoryAndKeepsItAlive) {
  Array array =
      kit::generate({4}, Dtype::i32, [](std::int64_t i) { return static_cast<double>(i); });
  const std::weak_ptr<void> memory = array.owner();
  auto* managed = TypeParam::to(array);
  array.as<std::int32_t>()[2] = 70;
  array = Array();
  EXPECT_FALSE(memory.expired());
  Array back = from_dlpack(managed);
  EXPECT_EQ(back.as<std::int32_t>()[2], 70);
  const Array part = back.slice(0, 2, 4);
  back = Array();
  EXPECT_EQ(part.as<std::int32_t>()[0], 70);
  EXPECT_FALSE(memory.expired());
}

TYPED_TEST(Dlpack, LetsGoOfTheMemoryWithTheDeleterOnAnyThread) {
  Array array = kit::random({4}, Dtype::f32, 1);
  const std::weak_ptr<void> memory = array.owner();
  auto* managed = TypeParam::to(array);
  array = Array();
  std::thread([managed] { managed->deleter(managed); }).join();
  EXPECT_TRUE(memory.expired());
}

TYPED_TEST(Dlpack, ExportsTheDeviceOfAnArray) {
  // No device is touched: the pointer is only passed on.
  int object = 0;
  const Array array({&object, Dtype::i32, Device::cuda(3), {1}, {1}}, nullptr);
  auto* managed = TypeParam::to(array);
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(managed->dl_tensor.device.device_id, 3);
  EXPECT_EQ(from_dlpack(managed).device(), Device::cuda(3));
}

TYPED_TEST(Dlpack, RefusesToExportNegativeStrides) {
  const Array array = kit::random({2, 3}, Dtype::f32, 1);
  EXPECT_ERROR(TypeParam::to(array.slice(1, 2, -4, -1)), unsupported,
               "to_dlpack: `array` of shape (2, 3) has strides (3, -1); DLPack's consumers take "
               "none below 0. "
               "Make a dense copy first.");
}

TYPED_TEST(Dlpack, MakesStridesThatMeanNothingPositive) {
  const Array array = kit::random({2, 3}, Dtype::f32, 1);
  for (const std::int64_t extent : {1, 0}) {
    ArrayView view = array.slice(1, 0, extent).view();
    view.strides[1] = -1;
    auto* managed = TypeParam::to(array.with_view(view));
    EXPECT_GE(managed->dl_tensor.strides[1], 0);
    EXPECT_TRUE(kit::same_bits(from_dlpack(managed), array.with_view(view)));
  }
}

TEST(DlpackVersioned, SaysItsVersionAndThatItMayBeWritten) {
  DLManagedTensorVersioned* managed = to_dlpack(kit::random({2}, Dtype::f32, 1));
  EXPECT_EQ(managed->version.major, 1u);
  EXPECT_EQ(managed->version.minor, static_cast<unsigned>(DLPACK_MINOR_VERSION));
  EXPECT_EQ(managed->flags, 0u);
  managed->deleter(managed);
}

TEST(DlpackImport, TakesNullStridesAsDense) {
  Foreign foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  const Array array = foreign.take();
  EXPECT_EQ(array.strides(), (Dims{3, 1}));
  EXPECT_TRUE(kit::near(array, std::vector<double>{0, 1, 2, 3, 4, 5}, 0));
}

TEST(DlpackImport, TakesNullShapeAndStridesAtRankZero) {
  Foreign foreign;
  foreign.managed.dl_tensor.ndim = 0;
  foreign.managed.dl_tensor.shape = foreign.managed.dl_tensor.strides = nullptr;
  foreign.managed.dl_tensor.byte_offset = 20;
  const Array array = foreign.take();
  EXPECT_EQ(array.rank(), 0);
  EXPECT_EQ(*array.as<float>(), 5);
}

TEST(DlpackImport, AddsTheByteOffset) {
  for (const bool with_strides : {true, false}) {
    Foreign foreign;
    foreign.managed.dl_tensor.byte_offset = 8;
    if (!with_strides) foreign.managed.dl_tensor.strides = nullptr;
    EXPECT_TRUE(kit::near(foreign.take(), std::vector<double>{2, 3, 4, 5, 6, 7}, 0));
  }
}

TEST(DlpackImport, TakesStridesOfZeroAndBelow) {
  Foreign foreign;
  foreign.managed.dl_tensor.data = foreign.data + 2;
  foreign.strides[0] = 0;
  foreign.strides[1] = -1;
  EXPECT_TRUE(kit::near(foreign.take(), std::vector<double>{2, 1, 0, 2, 1, 0}, 0));
}

TEST(DlpackImport, TakesNoElementsWithNullData) {
  Foreign foreign;
  foreign.shape[1] = 0;
  foreign.managed.dl_tensor.data = nullptr;
  const Array array = foreign.take();
  EXPECT_EQ(array.shape(), (Dims{2, 0}));
  EXPECT_EQ(array.data(), nullptr);
}

TEST(DlpackImport, SeesPinnedMemoryAsTheHostAndManagedMemoryAsTheDevice) {
  const struct {
    DLDevice device;
    Device wanted;
  } cases[] = {{{kDLCPU, 0}, Device::cpu()},
               {{kDLCUDAHost, 0}, Device::cpu()},
               {{kDLCUDA, 2}, Device::cuda(2)},
               {{kDLCUDAManaged, 0}, Device::cuda(0)}};
  for (const auto& [device, wanted] : cases) {
    Foreign foreign;
    foreign.managed.dl_tensor.device = device;
    EXPECT_EQ(foreign.take().device(), wanted);
    EXPECT_EQ(foreign.deleted, 1);
  }
}

TEST(DlpackImport, DeletesOnceWithTheLastOwnerOnItsThread) {
  Foreign foreign;
  Array array = foreign.take();
  auto part = std::make_unique<Array>(array.slice(0, 1, 2));
  array = Array();
  EXPECT_EQ(foreign.deleted, 0);
  std::thread worker([&part] { part.reset(); });
  const std::thread::id id = worker.get_id();
  worker.join();
  EXPECT_EQ(foreign.deleted, 1);
  EXPECT_EQ(foreign.deleted_on, id);
}

TEST(DlpackImport, TakesATensorWithoutADeleter) {
  Foreign foreign;
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(foreign.take().count(), 6);
  EXPECT_EQ(foreign.deleted, 0);
}

TEST(DlpackImport, KeepsReadOnlyMemoryReadOnlyOnTheWayOut) {
  Foreign foreign;
  foreign.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  {
    const Array part = foreign.take().slice(0, 0, 1);
    DLManagedTensorVersioned* again = to_dlpack(part);
    EXPECT_EQ(again->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    again->deleter(again);
    EXPECT_ERROR(to_dlpack_unversioned(part), unsupported,
                 "to_dlpack_unversioned: `array` is memory that was imported as read-only; DLPack "
                 "before 1.0 cannot "
                 "say so. Use to_dlpack, or make a copy first.");
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DlpackImport, DeletesAnotherMajorVersionUnseenAndRefusesIt) {
  Foreign foreign;
  foreign.managed.version = {2, 0};
  foreign.managed.dl_tensor.shape = reinterpret_cast<std::int64_t*>(8);  // must not be looked at
  EXPECT_ERROR(foreign.take(), unsupported,
               "from_dlpack: `tensor` is of DLPack 2.0; supported: 1.x. It was deleted.");
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DlpackImport, TakesALaterMinorVersion) {
  Foreign foreign;
  foreign.managed.version.minor = 99;
  EXPECT_EQ(foreign.take().count(), 6);
}

TEST(DlpackImport, LeavesARefusedTensorWithTheCaller) {
  const struct {
    const char* text;
    ErrorKind kind;
    void (*spoil)(Foreign& foreign);
  } cases[] = {
      {"from_dlpack: `tensor` has dtype float8_e4m3fn; supported: bool, integers, f16, bf16, f32, "
       "f64, c64, c128. "
       "Convert it first.",
       ErrorKind::unsupported,
       [](Foreign& f) {
         f.managed.dl_tensor.dtype = {kDLFloat8_e4m3fn, 8, 1};
       }},
      {"from_dlpack: `tensor` has dtype int4; supported: bool, integers, f16, bf16, f32, f64, c64, "
       "c128. "
       "Convert it first.",
       ErrorKind::unsupported,
       [](Foreign& f) {
         f.managed.dl_tensor.dtype = {kDLInt, 4, 1};
       }},
      {"from_dlpack: `tensor` has dtype float32 in 4 lanes; supported: bool, integers, f16, bf16, "
       "f32, f64, c64, "
       "c128. Convert it first.",
       ErrorKind::unsupported,
       [](Foreign& f) {
         f.managed.dl_tensor.dtype = {kDLFloat, 32, 4};
       }},
      {"from_dlpack: `tensor` has dtype complex32; supported: bool, integers, f16, bf16, f32, f64, "
       "c64, c128. "
       "Convert it first.",
       ErrorKind::unsupported,
       [](Foreign& f) {
         f.managed.dl_tensor.dtype = {kDLComplex, 32, 1};
       }},
      {"from_dlpack: `tensor` has dtype code 99 of 16 bits; supported: bool, integers, f16, bf16, "
       "f32, f64, c64, "
       "c128. Convert it first.",
       ErrorKind::unsupported,
       [](Foreign& f) {
         f.managed.dl_tensor.dtype = {99, 16, 1};
       }},
      {"from_dlpack: `tensor` is on a device of DLPack's type 10; supported: CPU (1), CUDA (2), "
       "pinned host memory "
       "(3) and CUDA managed memory (13). Copy it there first.",
       ErrorKind::unsupported,
       [](Foreign& f) {
         f.managed.dl_tensor.device = {kDLROCM, 0};
       }},
      {"from_dlpack: `tensor` is on CUDA device -1; devices count from 0.", ErrorKind::invalid,
       [](Foreign& f) {
         f.managed.dl_tensor.device = {kDLCUDA, -1};
       }},
      {"from_dlpack: `tensor` has rank 9; at most 8 is supported. Merge some of its axes first.",
       ErrorKind::unsupported, [](Foreign& f) { f.managed.dl_tensor.ndim = 9; }},
      {"from_dlpack: `tensor` has rank -1; it must be 0 to 8.", ErrorKind::invalid,
       [](Foreign& f) { f.managed.dl_tensor.ndim = -1; }},
      {"from_dlpack: `tensor` has rank 2 and a null shape; a shape is needed above rank 0.",
       ErrorKind::invalid, [](Foreign& f) { f.managed.dl_tensor.shape = nullptr; }},
      {"from_dlpack: `tensor` has shape (2, -3); extents must be at least 0.", ErrorKind::invalid,
       [](Foreign& f) { f.shape[1] = -3; }},
      {"from_dlpack: `tensor` of shape (2, 3) has null data.", ErrorKind::invalid,
       [](Foreign& f) { f.managed.dl_tensor.data = nullptr; }},
      {"from_dlpack: the first element of `tensor` (f32, byte offset 2) is not at a multiple of "
       "its 4 bytes. Copy it "
       "to aligned memory first.",
       ErrorKind::invalid, [](Foreign& f) { f.managed.dl_tensor.byte_offset = 2; }},
      {"from_dlpack: the first element of `tensor` (f32, byte offset 0) is not at a multiple of "
       "its 4 bytes. Copy it "
       "to aligned memory first.",
       ErrorKind::invalid,
       [](Foreign& f) { f.managed.dl_tensor.data = reinterpret_cast<char*>(f.data) + 1; }},
      {"from_dlpack: `tensor` of shape (4611686018427387904, 3) and strides null reaches over more "
       "bytes than 64 bits "
       "can count.",
       ErrorKind::invalid,
       [](Foreign& f) {
         f.shape[0] = std::int64_t{1} << 62;
         f.managed.dl_tensor.strides = nullptr;
       }},
      {"from_dlpack: `tensor` of shape (2, 3) and strides (4611686018427387904, 1) reaches over "
       "more bytes than 64 "
       "bits can count.",
       ErrorKind::invalid, [](Foreign& f) { f.strides[0] = std::int64_t{1} << 62; }},
  };
  for (const auto& [text, kind, spoil] : cases) {
    Foreign foreign;
    spoil(foreign);
    const kit::Caught caught = kit::caught([&] { foreign.take(); });
    EXPECT_EQ(caught.text, text);
    EXPECT_EQ(static_cast<int>(caught.kind), static_cast<int>(kind)) << text;
    EXPECT_EQ(foreign.deleted, 0) << text;
  }
}

TEST(DlpackImport, RefusesNull) {
  EXPECT_ERROR(from_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr)), invalid,
               "from_dlpack: `tensor` is null.");
  EXPECT_ERROR(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), invalid,
               "from_dlpack: `tensor` is null.");
}

TEST(DlpackDevice, GoesOutAndComesBackOnCuda) {
  SKIP_WITHOUT(Device::cuda());
  const Context context = kit::context(Device::cuda());
  const Array host = kit::random({3, 5}, Dtype::f32, 2);
  const Array back = from_dlpack(to_dlpack(kit::to_device(host, context).slice(1, 1, 4)));
  EXPECT_EQ(back.device(), Device::cuda());
  EXPECT_TRUE(kit::same_bits(kit::to_host(back, context),
                             kit::to_host(host.slice(1, 1, 4), kit::context(Device::cpu()))));
}

}  // namespace
}  // namespace forebay
