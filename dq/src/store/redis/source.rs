//! Where connections come from, if the URL does not say all: credentials that rotate, and streams of the program's own.

use std::fmt;
use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// A user and its password, from [`RedisStore::with_login`](super::RedisStore::with_login). Its `Debug` text shows neither.
#[derive(Clone)]
pub struct Login {
    /// `None` stands for the user `default`.
    pub(super) user: Option<String>,
    pub(super) password: String,
}

impl Login {
    /// This user, with this password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// The user `default`, with this password.
    pub fn with_password(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

/// What the client library needs of a stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

type Ask<T> = Arc<dyn Fn() -> BoxFuture<'static, io::Result<T>> + Send + Sync>;

/// What the program gives instead of the URL.
#[derive(Clone, Default)]
pub(super) struct Source {
    login: Option<Ask<Login>>,
    streams: Option<Ask<Box<dyn Stream>>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (login, streams) = (self.login.is_some(), self.streams.is_some());
        f.debug_struct("Source").field("login", &login).field("streams", &streams).finish()
    }
}

impl Source {
    pub(super) fn with_login<F>(self, ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<Login>> + Send + 'static,
    {
        Self { login: Some(Arc::new(move || Box::pin(ask()))), ..self }
    }

    pub(super) fn with_streams<S, F>(self, open: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        F: Future<Output = io::Result<S>> + Send + 'static,
    {
        let boxed = move || -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
            let opened = open();
            Box::pin(async move { Ok(Box::new(opened.await?) as Box<dyn Stream>) })
        };
        Self { streams: Some(Arc::new(boxed)), ..self }
    }

    /// The login of the next connection; `None`: that of the URL.
    pub(super) async fn login(&self) -> io::Result<Option<Login>> {
        asked(self.login.as_ref()).await
    }

    /// A stream of the program's own; `None`: dq connects to the host of the URL.
    pub(super) async fn stream(&self) -> io::Result<Option<Box<dyn Stream>>> {
        asked(self.streams.as_ref()).await
    }
}

async fn asked<T>(ask: Option<&Ask<T>>) -> io::Result<Option<T>> {
    match ask {
        Some(ask) => ask().await.map(Some),
        None => Ok(None),
    }
}
