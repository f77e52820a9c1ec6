//! A store on Redis that a program makes itself, for what no URL can say: credentials that rotate, connections of its own.
//!
//! Most programs need none of this: [`ContextFactory::store`](crate::ContextFactory::store) takes the URL.
//!
//! ```
//! use std::sync::Arc;
//!
//! use dq::ContextFactory;
//! use dq::redis::{Login, RedisStore};
//!
//! fn shop() -> Result<ContextFactory, Box<dyn std::error::Error>> {
//!     let store = RedisStore::new("rediss://redis.internal:6379")?
//!         .with_login(|| async { Ok(Login::new("dq", std::fs::read_to_string("/run/secrets/redis")?.trim())) });
//!     Ok(ContextFactory::new("shop").store(Arc::new(store)))
//! }
//! ```

#[doc(hidden)]
pub use crate::store::Store;
#[doc(inline)]
pub use crate::store::redis::{BadRedisUrl, Login, RedisStore};
