// SPDX-License-Identifier: Apache-2.0
//! Components that export wasi:http/incoming-handler: a server of HTTP/1 with an instance
//! for each request, so that no request sees what another left.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::StatusCode;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use wasmtime::{Engine, Store};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::p2::bindings::ProxyPre;
use wasmtime_wasi_http::p2::bindings::http::types::{ErrorCode, Scheme};
use wasmtime_wasi_http::p2::body::HyperOutgoingBody;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks, WasiHttpView};

use crate::command::{State, linked};
use crate::context;
use crate::end::{End, Refused, trap_text};
use crate::request::{Kind, Request};
use crate::stdio::Output;
use crate::timer::LoopTimer;

/// Further clients wait to be accepted, further requests to be begun.
const MOST_CONNECTIONS: usize = 512;
const MOST_REQUESTS: usize = 128;
/// Of a request's head, and for how long one may be waited for.
const MOST_HEAD: usize = 64 << 10;
const MOST_FIELDS: usize = 128;
const HEAD_TIME: Duration = Duration::from_secs(30);
/// Before the next try where the process has no descriptor or memory left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Response = hyper::Response<HyperOutgoingBody>;
type Sent<T> = Box<dyn Future<Output = std::result::Result<T, Error>> + Send>;

/// Refuses what guests would send out.
pub struct NoRequests;

impl WasiHttpHooks for NoRequests {
    fn send_request(
        &mut self,
        _request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _end: Sent<()>,
    ) -> Sent<(http::Response<WasiBody>, Sent<()>)> {
        Box::new(async { Err(Error::HttpRequestDenied) })
    }
}

struct Shared {
    ready: ProxyPre<State>,
    request: Request,
    running: Arc<Semaphore>,
}

pub struct Proxy {
    shared: Arc<Shared>,
    listener: OwnedFd,
}

impl Proxy {
    pub fn new(engine: &Engine, mut request: Request) -> Result<Proxy, Refused> {
        let listener = request
            .listener
            .take()
            .ok_or_else(|| Refused::Invalid("a proxy needs a listening socket".to_string()))?;
        let ready = ProxyPre::new(linked(engine, &request)?).map_err(|error| {
            Refused::Missing(format!(
                "the component does not export wasi:http/incoming-handler: {error:#}"
            ))
        })?;
        // What each request opens can be opened.
        context::add_directories(&mut context::streams_and_words(&request, false), &request)?;
        let running = Arc::new(Semaphore::new(MOST_REQUESTS));
        Ok(Proxy { shared: Arc::new(Shared { ready, request, running }), listener })
    }

    pub async fn run(&mut self) -> End {
        match self.serve().await {
            Ok(never) => match never {},
            Err(error) => End::Failed(format!("the listening socket fails: {error}")),
        }
    }

    async fn serve(&self) -> io::Result<Infallible> {
        let listener = std::net::TcpListener::from(self.listener.try_clone()?);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let place = permit(&connections).await;
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve_connection(self.shared.clone(), stream, place));
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK) => return Err(error),
                    _ => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
    }
}

async fn permit(semaphore: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // An error says that it is closed, which nobody does.
    semaphore.clone().acquire_owned().await.ok()
}

async fn serve_connection(
    shared: Arc<Shared>,
    stream: TcpStream,
    place: Option<OwnedSemaphorePermit>,
) {
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(shared, request).await) }
    });
    let served = http1::Builder::new()
        .timer(LoopTimer)
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MOST_HEAD)
        .max_headers(MOST_FIELDS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // What a client did wrong, or that it went, is its own affair.
    drop(served);
    drop(place);
}

/// The body of an answer, which is cut off where its guest failed: the end that is left by a
/// guest that is no more looks like a whole one.
struct WholeBody {
    body: HyperOutgoingBody,
    failed: Arc<AtomicBool>,
}

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(None) if self.failed.load(Ordering::Relaxed) => {
                Poll::Ready(Some(Err(Error::HttpResponseIncomplete)))
            }
            polled => polled,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response {
    let body = Full::new(text.into()).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    response
}

fn report(text: &str) {
    // Who does not read the container's errors does not get them.
    let line = format!("gantry-wasm: a request failed: {text}\n");
    let _ = Output::stderr(Kind::Proxy).write_whole(line.as_bytes());
}

fn store(shared: &Shared) -> Result<Store<State>, Refused> {
    let mut wasi = context::streams_and_words(&shared.request, false);
    context::add_directories(&mut wasi, &shared.request)?;
    let state = State::new(wasi.build(), context::limits(&shared.request));
    Ok(state.store(shared.ready.engine()))
}

async fn answer(shared: Arc<Shared>, request: hyper::Request<Incoming>) -> Response {
    let turn = permit(&shared.running).await;
    let store = match store(&shared) {
        Ok(store) => store,
        Err(refused) => {
            report(refused.text());
            return plain(StatusCode::INTERNAL_SERVER_ERROR, "the guest cannot be brought up\n");
        }
    };
    let (answered, answer) = oneshot::channel();
    let failed = Arc::new(AtomicBool::new(false));
    let task_failed = failed.clone();
    // It goes on after its answer has begun: the body is written by it.
    tokio::spawn(async move {
        if let Err(error) = handle(&shared.ready, store, request, answered).await {
            task_failed.store(true, Ordering::Relaxed);
            if error.downcast_ref::<I32Exit>().is_none_or(|exit| exit.0 != 0) {
                report(&trap_text(&error));
            }
        }
        drop(turn);
    });
    match answer.await {
        Ok(Ok(response)) => response.map(|body| WholeBody { body, failed }.boxed_unsync()),
        Ok(Err(code)) => {
            report(&format!("{code:?}"));
            plain(StatusCode::INTERNAL_SERVER_ERROR, "the guest answered with an error\n")
        }
        // The guest ended before it answered.
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the guest did not answer\n"),
    }
}

async fn handle(
    ready: &ProxyPre<State>,
    mut store: Store<State>,
    request: hyper::Request<Incoming>,
    answered: oneshot::Sender<Result<Response, ErrorCode>>,
) -> wasmtime::Result<()> {
    let request = match store.data_mut().http().new_incoming_request(Scheme::Http, request) {
        Ok(request) => request,
        Err(_) => {
            let _ =
                answered.send(Ok(plain(StatusCode::BAD_REQUEST, "the request names no host\n")));
            return Ok(());
        }
    };
    let out = store.data_mut().http().new_response_outparam(answered)?;
    let proxy = ready.instantiate_async(&mut store).await?;
    proxy.wasi_http_incoming_handler().call_handle(&mut store, request, out).await
}
