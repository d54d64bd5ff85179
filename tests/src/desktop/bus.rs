//! The desktop's session bus, spoken to from ordinary (blocking) test code.
//!
//! It must never connect to the person's own bus: the address is always given.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use tokio::runtime::{Builder, Handle, Runtime};
use zbus::zvariant::{DynamicType, OwnedValue};
use zbus::{Connection, Message, Proxy, connection, fdo};

/// No answer on a private bus takes longer, except those that wait for a person.
const ANSWER: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Bus {
    connection: Connection,
    address: String,
    // Last, so that the connection is gone before what drives it.
    runtime: Runtime,
}

impl Bus {
    pub(super) fn connect(address: &str) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("starting the thread that talks to the bus")?;
        let connection =
            block_on(&runtime, async { connection::Builder::address(address)?.method_timeout(ANSWER).build().await })
                .with_context(|| format!("connecting to the bus at {address}"))?;
        Ok(Self { connection, address: address.to_owned(), runtime })
    }

    /// A second connection, for what must not share the first (a monitor, a service).
    pub(super) fn another(&self) -> Result<Connection> {
        self.run(async { connection::Builder::address(self.address.as_str())?.build().await })
            .with_context(|| format!("connecting to the bus at {}", self.address))
    }

    /// Runs `work` to its end; works in a plain thread and inside another async runtime alike.
    pub(super) fn run<F>(&self, work: F) -> F::Output
    where
        F: Future + Send,
        F::Output: Send,
    {
        block_on(&self.runtime, work)
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(work);
    }

    /// Calls `interface.method` and gives its whole answer.
    pub(super) fn call<B>(&self, to: Target<'_>, method: &str, body: &B) -> Result<Message>
    where
        B: Serialize + DynamicType + Sync,
    {
        self.run(async { self.connection.call_method(Some(to.service), to.path, Some(to.interface), method, body).await })
            .with_context(|| format!("calling {}.{method} of {} at {}", to.interface, to.service, to.path))
    }

    pub(super) fn property(&self, of: Target<'_>, name: &str) -> Result<OwnedValue> {
        self.run(async {
            let proxy: Proxy<'_> = zbus::proxy::Builder::new(&self.connection)
                .destination(of.service)?
                .path(of.path)?
                .interface(of.interface)?
                .cache_properties(zbus::proxy::CacheProperties::No)
                .build()
                .await?;
            proxy.get_property::<OwnedValue>(name).await
        })
        .with_context(|| format!("reading {}.{name} of {} at {}", of.interface, of.service, of.path))
    }

    pub(super) fn has_owner(&self, name: &str) -> bool {
        self.run(async {
            let name = zbus::names::BusName::try_from(name).ok()?;
            fdo::DBusProxy::new(&self.connection).await.ok()?.name_has_owner(name).await.ok()
        })
        .unwrap_or(false)
    }
}

fn block_on<F>(runtime: &Runtime, work: F) -> F::Output
where
    F: Future + Send,
    F::Output: Send,
{
    if Handle::try_current().is_err() {
        return runtime.block_on(work);
    }
    std::thread::scope(|scope| match scope.spawn(|| runtime.block_on(work)).join() {
        Ok(output) => output,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// An interface of an object of a service.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) service: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
}
