// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gantry::vmm::protocol {

/// Of a config.json that the host sends: `PREFIX` and the path of a block device among its
/// `linux.devices`; the value is a device file of the guest's (`GuestMount::type` "device"), whose
/// numbers it gets, since nobody else can know them. It may be used, too.
inline constexpr const char* kDeviceAnnotation = "dev.gantry.vmm.device.";

}  // namespace gantry::vmm::protocol
