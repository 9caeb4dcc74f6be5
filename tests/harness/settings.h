// SPDX-License-Identifier: Apache-2.0
//
// What a run of the e2e tests is about, from the environment:
//   GANTRY_E2E_CONTAINERD  release of containerd (2.3.4)
//   GANTRY_E2E_OCI         crun or runc (crun); remote: no OCI runtime but the fake
//                          remote backend of tests/contract; gvisor, wasm, vmm: that backend
//   GANTRY_E2E_RUNSC       release of gVisor's runsc for it (20260905)
//   GANTRY_E2E_RUNTIME     runtime_type (io.containerd.gantry.v1); the stock
//                          io.containerd.runc.v2 shows what the tests ask for
//                          is what containerd does anyway
//   GANTRY_E2E_BIN         where gantry's programs are (../bin of the test)
//   GANTRY_E2E_IMAGES      where busybox.tar is (../../images of the test)
//   GANTRY_E2E_GUESTS      where tests/guests are as modules (../guests of the test)
//   GANTRY_E2E_VMM_IMAGE   where kernel and initrd of the vmm backend are (../../vmm of the test)
//   GANTRY_VMM_HYPERVISOR  of the vmm backend: qemu, cloud-hypervisor or firecracker (qemu); of the
//                          latter two the doubles of tests/vmm/doubles
//   GANTRY_CACHE           holds containerd/RELEASE/bin and runsc/RELEASE/bin
//   GANTRY_E2E_KEEP        set = the private folder stays when the run ends
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gantry::e2e {

/// A handler of CRI's beside `gantry` and `gantry-shim`.
struct CriRuntime {
  std::string name;
  std::string type;
  /// containerd's word for who makes the pods: podsandbox, shim, or a proxy plugin's name.
  std::string sandboxer = "podsandbox";
  /// In its table of options: BinaryName. Empty: it has no such table.
  std::string oci;
  /// The shim to execute, whatever the type's name says; empty: as that says.
  std::string path = {};
  /// containerd's word for how streams are made; empty: fifos.
  std::string io_type = {};
};

struct Settings {
  std::string release;
  std::string oci;
  std::string runtime;
  std::string runsc_release;
  std::string cache;  ///< GANTRY_CACHE.
  std::string containerd_bin;
  std::string gantry_bin;
  std::string remote_plugin;  ///< libgantry_remote.so beside the test.
  /// Beside the OCI runtime, handlers of the fake remote backend.
  bool two_backends = false;
  std::string images;
  std::string guests;
  std::string vmm_image;   ///< Of kernel and initrd.
  std::string hypervisor;  ///< GANTRY_VMM_HYPERVISOR.
  std::string doubles;     ///< Where the programs are that stand for hypervisors.
  std::string root;        ///< The private folder, short enough for sockets.
  std::string run_dir;     ///< GANTRY_RUN_DIR.
  std::string ns;          ///< containerd's namespace, of this run alone.
  bool newer_cri = false;  ///< Of containerd 1.7: ENABLE_CRI_SANDBOXES is set.
  std::vector<CriRuntime> more_runtimes;
  /// For containerd, and with that for gantry.
  std::map<std::string, std::string> env;
  std::string unavailable;  ///< Why the tests cannot run here; empty = they can.

  bool stock() const { return runtime == "io.containerd.runc.v2"; }

  bool remote() const { return oci == "remote"; }

  bool gvisor() const { return oci == "gvisor"; }

  bool wasm() const { return oci == "wasm"; }

  bool vmm() const { return oci == "vmm"; }

  /// A guest has no files of the node, so images are block devices.
  bool firecracker() const { return vmm() && hypervisor == "firecracker"; }

  /// The program that a machine is, of which there is one for each.
  std::string vmm_program() const {
    return hypervisor == "qemu" ? "qemu-system-x86_64" : hypervisor;
  }

  /// containerd's own name of it.
  std::string snapshotter() const { return firecracker() ? "blockfile" : "overlayfs"; }

  /// gantry with the runc backend.
  bool runc() const { return !stock() && !remote() && !gvisor() && !wasm() && !vmm(); }

  /// The OCI runtime that handlers with a table of options name: a test's script, which
  /// tells of each execution.
  std::string counted_oci() const { return root + "/counted-oci"; }

  /// The runsc of a release, where set-up puts it.
  std::string RunscOf(const std::string& release_of_runsc) const {
    return cache + "/runsc/" + release_of_runsc + "/bin/runsc";
  }

  /// Why there is none; empty = it is there.
  std::string no_runsc(const std::string& release_of_runsc) const;

  bool release1() const { return release.starts_with("1."); }

  /// containerd is MAJOR.MINOR or later.
  bool AtLeast(int major, int minor) const;

  /// containerd asks a sandbox controller of a proxy plugin's.
  bool controllers() const { return !release1() && !stock(); }

  /// containerd's.
  std::string address() const { return root + "/c.sock"; }

  /// Where gantry's gRPC server is.
  std::string grpc_address() const { return run_dir + "/grpc.sock"; }

  /// Folders of a controller's pods.
  std::string controller_folders() const { return run_dir + "-sandboxes"; }

  /// containerd lets a shim make pods. 1.7 has two CRI servers, and only the newer one does.
  bool sandbox_api() const { return no_sandbox_api().empty(); }

  /// Why it does not.
  std::string no_sandbox_api() const {
    if (release1() && !newer_cri) {
      return "without ENABLE_CRI_SANDBOXES, containerd 1.7 asks no shim for pods";
    }
    if (!release1() && !AtLeast(2, 3)) {
      return "containerd before 2.3 dies of a pod without a spec (NewBundle, nil pointer)";
    }
    return "";
  }
};

/// Reads the environment and makes the private folder.
Settings ReadSettings();

/// Ends all that a run left: processes, mounts, cgroups, files.
void CleanUp(const Settings& settings);

}  // namespace gantry::e2e
