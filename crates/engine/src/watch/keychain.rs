//! News of the keychain. They have no content that could be relied on: any of them only asks for a look.

#[cfg(target_os = "linux")]
pub(super) use linux::watch;
#[cfg(not(target_os = "linux"))]
pub(super) use other::watch;

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    use zbus::{Connection, MatchRule, MessageStream, message::Type};

    use super::super::{Looker, next};
    use crate::vault::SERVICE_ON_BUS;

    /// Without a bus there is no news; it is tried again this long after.
    const FIRST_PAUSE: Duration = Duration::from_secs(1);
    const LONGEST_PAUSE: Duration = Duration::from_secs(60);

    /// Ask for a look at every signal of the keychain, and whenever it comes or goes.
    pub(crate) async fn watch(looker: Looker) {
        let mut pause = FIRST_PAUSE;
        loop {
            match listen(&looker, &mut pause).await {
                Ok(()) => tracing::debug!("the session bus closed the connection"),
                Err(error) => tracing::debug!(%error, "no news of the keychain"),
            }
            looker.look();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn listen(looker: &Looker, pause: &mut Duration) -> zbus::Result<()> {
        let bus = Connection::session().await?;
        // The bus tells only what the owner of the name sends: nobody else can make news.
        let signals = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(SERVICE_ON_BUS)?
            .path_namespace("/org/freedesktop/secrets")?
            .build();
        let owner = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender("org.freedesktop.DBus")?
            .interface("org.freedesktop.DBus")?
            .member("NameOwnerChanged")?
            .add_arg(SERVICE_ON_BUS)?
            .build();
        let mut signals = MessageStream::for_match_rule(signals, &bus, Some(64)).await?;
        let mut owner = MessageStream::for_match_rule(owner, &bus, Some(8)).await?;
        *pause = FIRST_PAUSE;
        // Whatever happened before the bus was listened to.
        looker.look();
        loop {
            let news = tokio::select! {
                news = next(&mut signals) => news,
                news = next(&mut owner) => news,
            };
            match news {
                Some(Ok(news)) => {
                    tracing::debug!(?news, "news of the keychain");
                    looker.look();
                }
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::time::Duration;

    use super::super::Looker;

    /// These systems tell nobody; a look this often is what is left.
    const EVERY: Duration = Duration::from_secs(60);

    pub(crate) async fn watch(looker: Looker) {
        loop {
            looker.look();
            tokio::time::sleep(EVERY).await;
        }
    }
}
