// SPDX-License-Identifier: Apache-2.0
//
// What a container is to the sentry that it runs in. It is decided when it is made, and stays.
#pragma once

namespace gantry::gvisor {

enum class ContainerKind {
  /// The sentry's root, and the only one that it will ever have.
  kAlone,
  /// The sentry's root, a pod's pause container: further ones follow.
  kRoot,
  /// The sentry's root, gantry's own: the pod has no pause container. The core knows nothing of it.
  kOwnRoot,
  /// A further one of a pod.
  kFurther,
};

}  // namespace gantry::gvisor
