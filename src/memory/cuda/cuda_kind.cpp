#include "memory/cuda/cuda_kind.hpp"

#include "memory/cuda/cuda_memory.hpp"

namespace ist {

namespace {

// As nvidia-smi prints it: GPU-5f2b1c0d-0123-4567-89ab-cdef01234567
std::string uuid_text(const CUuuid& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

// Reads what can be known without a context.
Result<DeviceInfo> describe_device(const CudaApi& api, CUdevice device, int ordinal, int version) {
  DeviceInfo info;
  info.ordinal = ordinal;
  char name[256] = {};
  CUuuid uuid{};
  std::size_t memory = 0;
  const std::string place = " of cuda device " + std::to_string(ordinal);
  if (const CUresult result = api.cuDeviceGetName(name, sizeof(name) - 1, device); result != CUDA_SUCCESS) {
    return cuda_error(api, result, "cuDeviceGetName" + place);
  }
  if (const CUresult result = api.cuDeviceGetUuid_v2(&uuid, device); result != CUDA_SUCCESS) {
    return cuda_error(api, result, "cuDeviceGetUuid" + place);
  }
  if (const CUresult result = api.cuDeviceTotalMem_v2(&memory, device); result != CUDA_SUCCESS) {
    return cuda_error(api, result, "cuDeviceTotalMem" + place);
  }
  info.name = name;
  info.uuid = uuid_text(uuid);
  info.memory = Bytes{memory};
  info.detail = "driver for CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  return info;
}

Status unusable(Status status) { return {IST_ERR_KIND, status.text()}; }

}  // namespace

std::vector<Addition> CudaKind::additions() {
  const auto versions = windows_.versions();
  return {{"gdrcopy",
           "copies by the processor, of up to " + std::to_string(CudaWindows::kMostInto.value) + " bytes into devices and " +
               std::to_string(CudaWindows::kMostOut.value) + " out of them",
           versions.ok() ? *versions : std::string{}, versions.ok() ? std::string{} : versions.status().text()}};
}

Result<std::unique_ptr<MemoryKind>> make_cuda_kind(const CudaApi& api, const KindOptions& options) {
  if (options.worker) CudaWorkers::before_start(api);
  int version = 0;
  int count = 0;
  CUresult result = api.cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE) return unusable(cuda_error(api, result, "the driver is there, but cuInit"));
  if (result != CUDA_SUCCESS) return unusable(cuda_error(api, result, "cuInit"));
  result = api.cuDriverGetVersion(&version);
  if (result != CUDA_SUCCESS) return unusable(cuda_error(api, result, "cuDriverGetVersion"));
  result = api.cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS) return unusable(cuda_error(api, result, "cuDeviceGetCount"));
  if (count == 0) return Status{IST_ERR_KIND, "the driver shows no CUDA device; is CUDA_VISIBLE_DEVICES empty?"};
  std::vector<CUdevice> handles;
  std::vector<DeviceInfo> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    result = api.cuDeviceGet(&device, ordinal);
    if (result != CUDA_SUCCESS) return unusable(cuda_error(api, result, "cuDeviceGet " + std::to_string(ordinal)));
    Result<DeviceInfo> info = describe_device(api, device, ordinal, version);
    if (!info.ok()) return unusable(info.status());
    handles.push_back(device);
    devices.push_back(std::move(*info));
  }
  return std::unique_ptr<MemoryKind>(std::make_unique<CudaKind>(api, std::move(handles), std::move(devices), options));
}

Result<std::unique_ptr<MemoryKind>> make_cuda_kind(const KindOptions& options) {
  Result<CudaApi> api = load_cuda_api();
  if (!api.ok()) return api.status();
  return make_cuda_kind(*api, options);
}

}  // namespace ist
