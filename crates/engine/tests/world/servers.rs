//! Connections to servers that somebody else started, and everything that may be wrong with one.

use std::{future::Future, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::oneshot,
};
use tokio_tungstenite::{
    WebSocketStream, accept_async,
    tungstenite::{
        Message,
        protocol::{
            CloseFrame,
            frame::{
                Frame,
                coding::{CloseCode, Data, OpCode},
            },
        },
    },
};
use turnkeep_model::{
    Effect, Input, RuntimeId, ServerAddress,
    port::{AgentEvent, Failure, FailureClass, TransportRecord, TurnOutcome},
    state::AccountKind,
};

use crate::fake::{FakeAgent, PATIENCE, Stage, alive};

type Socket = WebSocketStream<TcpStream>;

fn server(address: impl Into<String>) -> AccountKind {
    AccountKind::Server { address: ServerAddress::new(address) }
}

/// A server of one client, on a free port.
async fn serving<F: Future<Output = ()> + Send + 'static>(serve: impl FnOnce(TcpStream) -> F + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("ws://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        serve(stream).await;
    });
    address
}

async fn talking<F: Future<Output = ()> + Send + 'static>(serve: impl FnOnce(Socket) -> F + Send + 'static) -> String {
    serving(async move |stream| serve(accept_async(stream).await.expect("an upgrade")).await).await
}

/// Until the client has gone.
async fn to_the_end(mut socket: Socket) {
    while socket.next().await.is_some_and(|message| message.is_ok()) {}
}

async fn failure_at(address: &str) -> Failure {
    let mut stage = Stage::new("exit");
    stage.spawn(1, server(address));
    let failure = stage.start_failed().await;
    assert!(failure.message.contains(address), "{} does not name {address}", failure.message);
    failure
}

/// What a connection that is open comes to.
async fn closed_by(
    serve: impl FnOnce(Socket) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + 'static,
) -> TransportRecord {
    let address = talking(async move |mut socket: Socket| {
        socket.send(Message::text("ready me")).await.expect("sent");
        // The turn is there before it goes wrong.
        socket.next().await;
        serve(socket).await;
    })
    .await;
    let mut stage = Stage::new("exit");
    stage.spawn(1, server(address));
    stage.ready().await;
    stage.start_turn(1, "hello");
    let record = stage
        .event("the turn's end", |event| match event {
            AgentEvent::TurnEnded {
                outcome: TurnOutcome::Failed(Failure { class: FailureClass::TransportClosed(record), .. }),
                ..
            } => Some((**record).clone()),
            AgentEvent::TurnEnded { outcome, .. } => panic!("the turn ended otherwise: {outcome:?}"),
            _ => None,
        })
        .await;
    assert_eq!((record.pid, record.status.as_str(), record.stream.as_str()), (None, "not ours", "socket"));
    let closed = stage.gone().await.expect("it went by itself");
    assert_eq!(closed.how, record.how);
    record
}

#[tokio::test]
async fn a_server_is_connected_to_talked_to_and_let_go_of() {
    let (gone, seen) = oneshot::channel();
    let address = talking(async move |mut socket: Socket| {
        // A message in three parts, with a ping between them.
        let part = |text: &'static str, code, last| Message::Frame(Frame::message(text.as_bytes(), OpCode::Data(code), last));
        socket.send(part("re", Data::Text, false)).await.expect("sent");
        socket.send(Message::Ping("are you there".into())).await.expect("sent");
        socket.send(part("ady m", Data::Continue, false)).await.expect("sent");
        socket.send(part("e", Data::Continue, true)).await.expect("sent");
        let mut heard = Vec::new();
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Text(text) = &message {
                socket.send(Message::text(format!("got {text}"))).await.expect("sent");
            }
            heard.push(message);
        }
        let _ = gone.send(heard);
    })
    .await;
    let mut stage = Stage::new("exit");
    stage.spawn(1, server(address));
    stage.ready().await;
    stage.start_turn(1, "hello");
    assert_eq!(stage.notice("got").await, "got turn hello");
    stage.stop(1, false);
    assert_eq!(stage.gone().await, None);
    // It has been closed by the time that this is said.
    let heard = tokio::time::timeout(PATIENCE, seen).await.expect("in time").expect("the server's end");
    assert!(heard.iter().any(|message| matches!(message, Message::Pong(said) if &said[..] == b"are you there")), "{heard:?}");
    assert!(
        heard.iter().any(|message| matches!(message, Message::Close(Some(frame)) if frame.code == CloseCode::Normal)),
        "{heard:?}"
    );
    assert_eq!(alive(&stage.instance), [], "something was started");
}

#[tokio::test]
async fn a_server_that_does_not_say_goodbye_is_not_waited_for() {
    for force in [false, true] {
        let (done, wait) = oneshot::channel::<()>();
        let address = talking(async move |mut socket: Socket| {
            socket.send(Message::text("ready me")).await.expect("sent");
            let _ = wait.await;
        })
        .await;
        let mut stage = Stage::new("exit");
        stage.spawn(1, server(address));
        stage.ready().await;
        let begun = std::time::Instant::now();
        stage.stop(1, force);
        assert_eq!(stage.gone().await, None);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(if force { 1 } else { 2 }), "{took:?}");
        drop(done);
    }
}

#[tokio::test]
async fn a_socket_is_found_behind_a_link_and_a_long_path() {
    let root = tempfile::tempdir().expect("a folder");
    let real = root.path().join("real.sock");
    let listener = UnixListener::bind(&real).expect("bound");
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let mut socket = accept_async(stream).await.expect("an upgrade");
        socket.send(Message::text("ready me")).await.expect("sent");
        while socket.next().await.is_some_and(|message| message.is_ok()) {}
    });
    let folder = root.path().join("x".repeat(120));
    std::fs::create_dir(&folder).expect("made");
    let link = folder.join("link.sock");
    std::os::unix::fs::symlink(&real, &link).expect("linked");
    let mut stage = Stage::new("exit");
    stage.spawn(1, server(format!("unix://{}", link.display())));
    stage.ready().await;
    stage.stop(1, false);
    assert_eq!(stage.gone().await, None);
}

#[tokio::test]
async fn what_is_no_server_says_so_and_what_to_do() {
    let root = tempfile::tempdir().expect("a folder");
    let at = |name: &str| format!("unix://{}", root.path().join(name).display());

    assert!(failure_at(&at("nothing")).await.message.contains("no such socket"));

    std::os::unix::fs::symlink(root.path().join("gone"), root.path().join("link")).expect("linked");
    assert!(failure_at(&at("link")).await.message.contains("is gone, so its server has ended"));

    std::fs::write(root.path().join("file"), "text").expect("written");
    assert!(failure_at(&at("file")).await.message.contains("not a socket"));

    drop(UnixListener::bind(root.path().join("left")).expect("bound"));
    assert!(failure_at(&at("left")).await.message.contains("nobody listens there"));

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("ws://{}", listener.local_addr().expect("bound"));
    drop(listener);
    assert!(failure_at(&address).await.message.contains("nobody listens there"));

    // What must not be connected to is not, whoever asks.
    for (address, why) in [("ws://192.0.2.1:1", "not encrypted"), ("wss://127.0.0.1:1", "not supported")] {
        let mut stage = Stage::new("exit");
        stage.spawn(1, server(address));
        assert!(stage.start_failed().await.message.contains(why));
    }
}

#[tokio::test]
async fn a_wrong_answer_to_the_upgrade_says_what_it_was() {
    let answers = async |answer: &'static str| {
        serving(async move |mut stream: TcpStream| {
            let mut asked = vec![0; 4096];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
            let _ = stream.read(&mut asked).await;
        })
        .await
    };
    for (answer, why) in [
        ("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "wants a token"),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "refuses this client"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answered with HTTP 404"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "answered with HTTP 200"),
        ("220 mail.example ESMTP\r\n", "does not answer as a WebSocket server"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: d3JvbmcgYW5zd2VyIGhlcmU=\r\n\r\n",
            "does not answer as a WebSocket server",
        ),
        ("", "closed before it was open"),
    ] {
        let address = answers(answer).await;
        let failure = failure_at(&address).await;
        assert!(failure.message.contains(why), "{answer:?}: {}", failure.message);
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    // It takes the connection, and not even the upgrade comes.
    let address = serving(async move |stream: TcpStream| {
        tokio::time::sleep(PATIENCE).await;
        drop(stream);
    })
    .await;
    assert!(failure_at(&address).await.message.contains("does not answer within 10 s"));
}

#[tokio::test]
async fn a_server_that_closes_before_it_is_ready_says_so() {
    let address = talking(async move |mut socket: Socket| {
        let farewell = CloseFrame { code: CloseCode::Away, reason: "going down".into() };
        socket.close(Some(farewell)).await.expect("closed");
        to_the_end(socket).await;
    })
    .await;
    let failure = failure_at(&address).await;
    assert!(failure.message.contains("before it was ready") && failure.message.contains("going down"), "{}", failure.message);
}

#[tokio::test]
async fn a_connection_that_breaks_fails_its_turn_with_a_record_of_how() {
    let record = closed_by(|socket| Box::pin(async move { drop(socket) })).await;
    assert_eq!(record.how, "eof");

    let record = closed_by(|mut socket| {
        Box::pin(async move {
            let farewell = CloseFrame { code: CloseCode::Restart, reason: "restarting".into() };
            socket.close(Some(farewell)).await.expect("closed");
            to_the_end(socket).await;
        })
    })
    .await;
    assert_eq!(record.how, "closed by the server: restarting (1012)");

    let record = closed_by(|mut socket| {
        Box::pin(async move {
            socket.send(Message::binary(vec![1, 2, 3])).await.expect("sent");
            to_the_end(socket).await;
        })
    })
    .await;
    assert_eq!(record.how, "it sent a binary message of 3 bytes, which its protocol does not have");

    let record = closed_by(|mut socket| {
        Box::pin(async move {
            let frame = Frame::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true);
            socket.send(Message::Frame(frame)).await.expect("sent");
            to_the_end(socket).await;
        })
    })
    .await;
    assert!(record.how.contains("UTF-8"), "{}", record.how);

    // Only the head of a frame that would be of 1 GB: nothing is waited for, or made room for.
    let record = closed_by(|mut socket| {
        Box::pin(async move {
            let head = [&[0x81, 127][..], &(1_u64 << 30).to_be_bytes()].concat();
            socket.get_mut().write_all(&head).await.expect("sent");
            to_the_end(socket).await;
        })
    })
    .await;
    assert!(record.how.contains("1073741824 bytes, more than the 67108864"), "{}", record.how);
}

#[tokio::test]
async fn a_long_message_is_taken_whole() {
    let text = format!("got {}", "x".repeat(20 << 20));
    let length = text.len();
    let address = talking(async move |mut socket: Socket| {
        socket.send(Message::text("ready me")).await.expect("sent");
        socket.send(Message::text(text)).await.expect("sent");
        to_the_end(socket).await;
    })
    .await;
    let mut stage = Stage::new("exit");
    stage.spawn(1, server(address));
    stage.ready().await;
    assert_eq!(stage.notice("got").await.len(), length);
}

#[tokio::test]
async fn a_connection_that_is_not_there_yet_can_be_let_go_of() {
    let address = serving(async move |stream: TcpStream| {
        tokio::time::sleep(PATIENCE).await;
        drop(stream);
    })
    .await;
    let mut stage = Stage::with("exit", FakeAgent::new());
    stage.spawn(1, server(address));
    stage.stop(1, false);
    assert_eq!(stage.gone().await, None);
}

#[tokio::test]
async fn an_end_of_the_world_closes_the_connection() {
    let root = tempfile::tempdir().expect("a folder");
    let path = root.path().join("it.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let served = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let mut socket: WebSocketStream<UnixStream> = accept_async(stream).await.expect("an upgrade");
        socket.send(Message::text("ready me")).await.expect("sent");
        while socket.next().await.is_some_and(|message| message.is_ok()) {}
    });
    let mut stage = Stage::new("exit");
    stage.world.perform(Effect::Spawn {
        runtime: RuntimeId(1),
        provider: turnkeep_model::ProviderId::new(crate::fake::PROVIDER),
        account: turnkeep_model::AccountId(1),
        credential: turnkeep_model::CredentialId(1),
        kind: server(format!("unix://{}", path.display())),
    });
    stage.input("ready", |input| matches!(input, Input::Agent { event: AgentEvent::Ready { .. }, .. }).then_some(())).await;
    let Stage { world, .. } = stage;
    tokio::time::timeout(Duration::from_secs(5), world.shut()).await.expect("it ends");
    tokio::time::timeout(PATIENCE, served).await.expect("in time").expect("the server saw it");
}
