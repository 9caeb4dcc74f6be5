// SPDX-License-Identifier: Apache-2.0
//! Waiting, of modules. A file can always be read; the engine's own function finds that out by
//! reading in another thread, of which this process may have none. So it is asked about time in
//! place of files: about none at all, which is over at once.
//! Source: WASI, legacy/preview1/witx/typenames.witx ($subscription, $event).

use wasmtime::{AsContextMut, Caller, Extern, Linker, Result, bail};
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::p1::types::Fd;
use wasmtime_wasi::p1::wasi_snapshot_preview1::{WasiSnapshotPreview1, poll_oneoff};
use wiggle::GuestMemory;

use crate::module::State;

const SUBSCRIPTION: usize = 48;
const EVENT: usize = 32;
/// In both, what the guest has put there; in a subscription, what it is about.
const USERDATA: usize = 0;
const TAG: usize = 8;
const FILE: usize = 16;
/// Of an event.
const TYPE: usize = 10;
const BYTES: usize = 16;
const FLAGS: usize = 24;

const CLOCK: u8 = 0;
const FD_READ: u8 = 1;
const MONOTONIC: u8 = 1;
const HANGUP: u8 = 1;

/// The function that replaces that of the linker, which is to allow that.
pub fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    linker.func_wrap_async(
        "wasi_snapshot_preview1",
        "poll_oneoff",
        |mut caller: Caller<'_, State>, (list, events, count, ready): (i32, i32, i32, i32)| {
            Box::new(async move {
                let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
                    bail!("missing required memory export");
                };
                let fuel = caller.as_context_mut().hostcall_fuel();
                let (bytes, state) = memory.data_and_store_mut(&mut caller);
                let wasi = &mut state.wasi;
                wasi.set_hostcall_fuel(fuel);
                let asked = Asked::of(wasi, bytes, list, count).await;
                if let Some(asked) = &asked {
                    asked.put_clocks(bytes);
                }
                let mut guest = GuestMemory::Unshared(&mut *bytes);
                let result = poll_oneoff(wasi, &mut guest, list, events, count, ready).await;
                if let Some(asked) = &asked {
                    asked.put_back(bytes);
                    if matches!(result, Ok(0)) {
                        asked.name_events(bytes, events, ready);
                    }
                }
                result
            })
        },
    )?;
    Ok(())
}

/// A file that can be read: how much there is.
type Readable = Option<u64>;

/// A list with files to read in it, as the guest has it.
struct Asked {
    at: usize,
    list: Vec<u8>,
    files: Vec<Readable>,
}

impl Asked {
    /// None: there are no such files in it, or it is not in the guest's memory.
    async fn of(wasi: &mut WasiP1Ctx, bytes: &[u8], list: i32, count: i32) -> Option<Asked> {
        let at = list as u32 as usize;
        let size = (count as u32 as usize).checked_mul(SUBSCRIPTION)?;
        let list = bytes.get(at..at.checked_add(size)?)?;
        if !list.chunks_exact(SUBSCRIPTION).any(|each| each[TAG] == FD_READ) {
            return None;
        }
        let list = list.to_vec();
        let mut files = Vec::new();
        for each in list.chunks_exact(SUBSCRIPTION) {
            files.push(match each[TAG] {
                FD_READ => readable(wasi, number(each, FILE)).await,
                _ => None,
            });
        }
        files.iter().any(Option::is_some).then_some(Asked { at, list, files })
    }

    /// Each is named by its place: of the events there may be fewer.
    fn put_clocks(&self, bytes: &mut [u8]) {
        let list = &mut bytes[self.at..self.at + self.list.len()];
        for (i, each) in list.chunks_exact_mut(SUBSCRIPTION).enumerate() {
            if self.files[i].is_some() {
                each.fill(0);
                each[TAG] = CLOCK;
                each[FILE] = MONOTONIC;
            }
            each[USERDATA..USERDATA + 8].copy_from_slice(&(i as u64).to_le_bytes());
        }
    }

    fn put_back(&self, bytes: &mut [u8]) {
        bytes[self.at..self.at + self.list.len()].copy_from_slice(&self.list);
    }

    /// What the engine has written there is in the guest's memory.
    fn name_events(&self, bytes: &mut [u8], events: i32, ready: i32) {
        let count = number(bytes, ready as u32 as usize) as usize;
        let at = events as u32 as usize;
        for event in bytes[at..at + count * EVENT].chunks_exact_mut(EVENT) {
            let i = number(event, USERDATA) as usize;
            let name = i * SUBSCRIPTION + USERDATA;
            event[USERDATA..USERDATA + 8].copy_from_slice(&self.list[name..name + 8]);
            if let Some(left) = self.files[i] {
                event[TYPE] = FD_READ;
                event[BYTES..BYTES + 8].copy_from_slice(&left.to_le_bytes());
                event[FLAGS] = if left == 0 { HANGUP } else { 0 };
            }
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// None: it is no file, and the engine can tell.
async fn readable(wasi: &mut WasiP1Ctx, fd: u32) -> Readable {
    // Neither function looks at memory.
    let mut none = GuestMemory::Unshared(&mut []);
    let at = wasi.fd_tell(&mut none, Fd::from(fd)).ok()?;
    let about = wasi.fd_filestat_get(&mut none, Fd::from(fd)).await.ok()?;
    Some(about.size.saturating_sub(at))
}
