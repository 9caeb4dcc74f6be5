// SPDX-License-Identifier: Apache-2.0
//! The event loop's clock for the HTTP server.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

#[derive(Clone)]
pub struct LoopTimer;

struct LoopSleep(Pin<Box<tokio::time::Sleep>>);

impl Future for LoopSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl Sleep for LoopSleep {}

impl Timer for LoopTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(LoopSleep(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(LoopSleep(Box::pin(tokio::time::sleep_until(deadline.into()))))
    }
}
