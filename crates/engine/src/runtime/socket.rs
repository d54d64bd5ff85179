//! The way to a server that somebody else started: a Unix socket or a loopback port, and WebSocket over it.
//!
//! Connects and carries messages, and that is all: it knows no process, and nothing here could signal one. Each step has a
//! deadline, memory is bounded whatever comes, and each failure names the address and says what to do.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::BytesMut;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::{Semaphore, mpsc, oneshot},
    task::JoinHandle,
};
use tokio_tungstenite::{
    client_async_with_config,
    tungstenite::{
        Error, Message,
        error::{CapacityError, ProtocolError},
        protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
    },
};
use turnkeep_agents::{Frame, Server};
use turnkeep_model::port::Failure;

use super::{
    actor::start_failed,
    stdio::{LONGEST_LINE, Line, ToWrite, Trouble, UNREAD_BYTES, frames},
    talk::{Channels, Pipe},
};

/// For the connection and the upgrade together.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The longest path that the system takes for a socket, without its end.
#[cfg(unix)]
const LONGEST_SOCKET: usize = 107;

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) channels: Channels,
    /// The two tasks that hold it: it is closed when both have ended.
    pub(super) tasks: [JoinHandle<()>; 2],
}

/// Connect to a server. `name`: of the agent, for messages.
pub(super) async fn connect(name: &str, server: &Server) -> Result<Connection, Failure> {
    let address = server.address();
    let connected = tokio::time::timeout(CONNECT_WITHIN, async {
        match server {
            Server::Unix { path } => match unix::open(path).await {
                Ok(stream) => upgrade(stream, "ws://localhost/").await,
                Err(why) => Err(why),
            },
            Server::WebSocket { host, port, path } => {
                let at = SocketAddr::new(*host, *port);
                match TcpStream::connect(at).await {
                    Ok(stream) => {
                        // Small messages, each of which somebody waits for.
                        let _ = stream.set_nodelay(true);
                        upgrade(stream, &format!("ws://{at}{path}")).await
                    }
                    Err(error) => Err(refused(&error)),
                }
            }
        }
    });
    match connected.await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err((why, detail))) => Err(start_failed(format!("{name} could not be reached at {address}: {why}"), detail)),
        Err(_) => Err(start_failed(
            format!(
                "{name} could not be reached at {address}: something takes the connection and does not answer within {} s. See \
                 that the address is that of a {name} server, and that the server is not stuck.",
                CONNECT_WITHIN.as_secs()
            ),
            None,
        )),
    }
}

/// Why not, for a person, and what the system said.
type Because = (String, Option<String>);

fn refused(error: &std::io::Error) -> Because {
    let known = [
        (std::io::ErrorKind::ConnectionRefused, "nobody listens there. Start the server, then try again."),
        (std::io::ErrorKind::PermissionDenied, "the socket may not be opened by this user. Check its permissions."),
        (std::io::ErrorKind::NotFound, "there is no such socket. Start the server, or correct the address."),
    ];
    let why = known.iter().find(|(kind, _)| *kind == error.kind()).map_or("the connection could not be made.", |(_, why)| why);
    (why.to_owned(), Some(error.to_string()))
}

#[cfg(unix)]
mod unix {
    use std::{io::ErrorKind, os::unix::ffi::OsStrExt as _, path::Path};

    use tokio::net::UnixStream;

    use super::{Because, LONGEST_SOCKET, refused};

    /// Connect to the socket at this path, or that the link there leads to: only the socket's own path has the system's
    /// length limit.
    pub(super) async fn open(path: &Path) -> Result<UnixStream, Because> {
        let given = path.to_owned();
        let found = tokio::task::spawn_blocking(move || {
            let real = given.canonicalize()?;
            let is_socket = std::os::unix::fs::FileTypeExt::is_socket(&real.metadata()?.file_type());
            Ok::<_, std::io::Error>((real, is_socket))
        });
        let (real, is_socket) = match found.await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
                let why = "the socket to which the link there leads is gone, so its server has ended. Start it, then try again.";
                return Err((why.to_owned(), Some(error.to_string())));
            }
            Ok(Err(error)) => return Err(refused(&error)),
            Err(_) => return Err(("Turnkeep is ending.".to_owned(), None)),
        };
        if !is_socket {
            return Err(("what is there is not a socket. Correct the address.".to_owned(), None));
        }
        if real.as_os_str().as_bytes().len() > LONGEST_SOCKET {
            return Err(("the path of the socket is longer than the system takes. Use a shorter one.".to_owned(), None));
        }
        let stream = UnixStream::connect(&real).await.map_err(|error| refused(&error))?;
        // Whoever listens reads the conversation.
        let owner = stream.peer_cred().map_err(|error| refused(&error))?.uid();
        if owner != rustix::process::geteuid().as_raw() && owner != 0 {
            return Err(("it is another user's server, who could read the conversation. It is not used.".to_owned(), None));
        }
        Ok(stream)
    }
}

#[cfg(not(unix))]
mod unix {
    use super::Because;

    #[expect(clippy::unused_async, reason = "the same signature as where there are such sockets")]
    pub(super) async fn open(_path: &std::path::Path) -> Result<tokio::net::TcpStream, Because> {
        Err(("Unix sockets are not used on this system. Let the server listen at ws://127.0.0.1:PORT.".to_owned(), None))
    }
}

async fn upgrade<S>(stream: S, request: &str) -> Result<Connection, Because>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = WebSocketConfig::default()
        .max_message_size(Some(LONGEST_LINE))
        .max_frame_size(Some(LONGEST_LINE))
        // Nothing waits for more to be sent with it.
        .write_buffer_size(0);
    let (socket, _) = client_async_with_config(request, stream, Some(limits)).await.map_err(|error| not_upgraded(&error))?;
    let (sink, source) = socket.split();
    let (to, frames) = frames();
    let (tell, trouble) = mpsc::channel(1);
    let writer = tokio::spawn(async move {
        if let Err(why) = write_messages(sink, frames).await {
            let _ = tell.send(why).await;
        }
    });
    let (lines_to, lines) = mpsc::channel(64);
    let (give_up, told) = oneshot::channel();
    let reader = tokio::spawn(read_messages(source, lines_to, told));
    let channels = Channels { frames: Some(to), trouble, output: Pipe::new(lines, give_up) };
    Ok(Connection { channels, tasks: [reader, writer] })
}

fn not_upgraded(error: &Error) -> Because {
    let why =
        if let Error::Http(answer) = error {
            match answer.status().as_u16() {
            401 => "the server wants a token, and Turnkeep keeps none for servers. Start it without one: on 127.0.0.1, or better \
                    at a Unix socket, only this computer reaches it."
                .to_owned(),
            403 => "the server refuses this client. Check how it was started.".to_owned(),
            status => format!("what listens there is no WebSocket server (it answered with HTTP {status}). Correct the address."),
        }
        } else if let Error::Io(_) | Error::Protocol(ProtocolError::HandshakeIncomplete) | Error::ConnectionClosed = error {
            "the connection was closed before it was open. See that the server still runs, then try again.".to_owned()
        } else {
            "what listens there does not answer as a WebSocket server does. Correct the address.".to_owned()
        };
    (why, Some(error.to_string()))
}

/// Messages as they come, each as a line; [`Line::Closed`] is the last.
async fn read_messages(
    mut source: impl Stream<Item = Result<Message, Error>> + Unpin,
    to: mpsc::Sender<Line>,
    mut give_up: oneshot::Receiver<()>,
) {
    let room = Arc::new(Semaphore::new(UNREAD_BYTES));
    let mut said = None;
    let error = loop {
        let message = tokio::select! {
            message = source.next() => message,
            _ = &mut give_up => break said,
        };
        match message {
            Some(Ok(Message::Text(text))) => {
                let bytes = BytesMut::from(bytes::Bytes::from(text));
                let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let Ok(room) = Arc::clone(&room).acquire_many_owned(size).await else { return };
                if to.send(Line::Whole { bytes, ended: true, _room: room }).await.is_err() {
                    return;
                }
            }
            Some(Ok(Message::Binary(bytes))) => {
                break Some(format!("it sent a binary message of {} bytes, which its protocol does not have", bytes.len()));
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            // What is left is to answer it, which reading on does.
            Some(Ok(Message::Close(frame))) => said = Some(farewell(frame.as_ref())),
            Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => break said,
            Some(Err(Error::ConnectionClosed | Error::AlreadyClosed)) | None => break said,
            Some(Err(error)) => break Some(said.unwrap_or_else(|| broken(&error))),
        }
    };
    let _ = to.send(Line::Closed { error }).await;
}

fn farewell(frame: Option<&CloseFrame>) -> String {
    match frame {
        Some(frame) if !frame.reason.is_empty() => format!("closed by the server: {} ({})", frame.reason, u16::from(frame.code)),
        Some(frame) => format!("closed by the server ({})", u16::from(frame.code)),
        None => "closed by the server".to_owned(),
    }
}

fn broken(error: &Error) -> String {
    if let Error::Capacity(CapacityError::MessageTooLong { size, max_size }) = error {
        return format!("it sent a message of {size} bytes, more than the {max_size} that are taken");
    }
    if let Error::Utf8(_) = error {
        return "it sent text that is not UTF-8".to_owned();
    }
    error.to_string()
}

/// Send frames until there are no more, then say goodbye.
async fn write_messages(mut sink: impl Sink<Message, Error = Error> + Unpin, mut frames: ToWrite) -> Result<(), Trouble> {
    while let Some(frame) = frames.next().await {
        match frame {
            Frame::Text(text) => sink.send(Message::text(text)).await.map_err(|error| Trouble::Pipe(error.to_string()))?,
            // No credential of ours is a server's business.
            Frame::WithSecret { .. } => {
                let why = "A secret was to be sent to a server that Turnkeep did not start; it was not.";
                return Err(Trouble::Secret(start_failed(why.to_owned(), None)));
            }
        }
    }
    // Whether the goodbye arrives changes nothing.
    let _ = sink.send(Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() }))).await;
    Ok(())
}
