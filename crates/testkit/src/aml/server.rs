//! The listening side: one port with TLS for the cloud, one without for identities, as on a node.

use super::answer::{Answer, Body};
use super::call::Call;
use super::world::World;
use super::{metadata, routes};
use crate::real::Certificate;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Handle, Runtime};
use tokio_rustls::TlsAcceptor;

pub(super) struct Server {
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
    secured: TcpListener,
    plain: TcpListener,
    acceptor: TlsAcceptor,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.endpoint())
    }
}

/// Answers the requests of a port; none cuts the connection.
type Handler = fn(&Arc<World>, &Call) -> Option<Answer>;

impl Server {
    /// Listens; no request is answered yet.
    pub(super) fn bind(certificate: &Certificate) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        };
        let handle = runtime.handle().clone();
        Self {
            runtime: Mutex::new(Some(runtime)),
            handle,
            secured: listen(),
            plain: listen(),
            acceptor: acceptor(certificate),
        }
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }
    pub(super) fn endpoint(&self) -> String {
        format!("https://localhost:{}", port(&self.secured))
    }
    pub(super) fn plain_endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", port(&self.plain))
    }

    pub(super) fn serve(&self, world: &Arc<World>) {
        let listeners = [
            (
                &self.secured,
                Some(self.acceptor.clone()),
                routes::serve as Handler,
            ),
            (&self.plain, None, metadata::identity as Handler),
        ];
        for (listener, acceptor, handler) in listeners {
            let (listener, world) = (listener.try_clone().unwrap(), Arc::clone(world));
            self.handle
                .spawn(accept(listener, acceptor, world, handler));
        }
    }

    /// Stops listening and answering at once.
    pub(super) fn end(&self) {
        if let Some(runtime) = self
            .runtime
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            runtime.shutdown_background();
        }
    }
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().map_or(0, |address| address.port())
}

fn acceptor(made: &Certificate) -> TlsAcceptor {
    let chain = vec![CertificateDer::from_pem_file(&made.certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&made.key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    TlsAcceptor::from(Arc::new(
        config
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap(),
    ))
}

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    world: Arc<World>,
    handler: Handler,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, world) = (acceptor.clone(), Arc::clone(&world));
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            match acceptor {
                None => connection(stream, world, handler).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        connection(stream, world, handler).await;
                    }
                }
            }
        });
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    world: Arc<World>,
    handler: Handler,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let world = Arc::clone(&world);
        async move {
            let call = call(request).await?;
            let answer = tokio::task::spawn_blocking(move || handler(&world, &call))
                .await
                .map_err(io::Error::other)?;
            answer
                .map(response)
                .ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))
        }
    });
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn call(request: Request<Incoming>) -> io::Result<Call> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map_err(io::Error::other)?
        .to_bytes()
        .to_vec();
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect();
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    Ok(Call::new(head.method.as_str(), target, headers, body))
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let body = match answer.body {
        Body::Empty => Vec::new(),
        Body::Json(value) => value.to_string().into_bytes(),
        Body::Bytes(bytes) => bytes,
    };
    let mut builder = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        builder = builder.header(name, value);
    }
    builder
        .body(Full::new(Bytes::from(body)))
        .unwrap_or_default()
}
