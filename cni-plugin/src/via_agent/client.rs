//! One call of gRPC on a connection of its own: by HTTP/2 alone, for the program starts anew for each call.

use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::{Builder, SendRequest};
use h2::{Ping, PingPong};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use prost::Message as _;
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::error::{ServiceError, TRY_AGAIN};
use super::message::{InvokeRequest, InvokeResponse};

/// `shunt.cni.v1.CniService`.
const METHOD: &str = "http://localhost/shunt.cni.v1.CniService/Invoke";

/// How long the service may take to greet: before that nothing is sent.
const GREETING: Duration = Duration::from_secs(5);

/// How long a call may take: as long as the service gives it. It is told so, and a little later nobody waits any more.
const LONGEST: Duration = Duration::from_secs(300);
const GRACE: Duration = Duration::from_secs(5);

/// How often it is asked whether it is there while it works, and how long it may take to say so.
const ALIVE: Duration = Duration::from_secs(10);
const SILENT: Duration = Duration::from_secs(20);

/// Bytes of an answer: as of a plugin's.
const MAX_ANSWER: usize = 16 << 20;

/// Bytes before each message of gRPC: a flag, and the length.
const PREFIX: usize = 5;

/// Codes of gRPC's: the service knows no such method; root alone may call it; it is busy and has begun nothing.
const UNIMPLEMENTED: &str = "12";
const PERMISSION_DENIED: &str = "7";
const UNAVAILABLE: &str = "14";

/// The code of CNI's for one who may not.
const IO: u32 = 5;

/// Sends the request and waits for the answer.
///
/// # Errors
/// [`ServiceError`].
pub(super) fn call<'a>(
    socket: &Path,
    request: &InvokeRequest,
    trace: impl Iterator<Item = (&'static str, &'a str)>,
) -> Result<InvokeResponse, ServiceError> {
    let unreachable = |source| ServiceError::Unreachable { path: socket.to_path_buf(), source };
    let stream = shunt_agent_api::connect(socket, Instant::now() + GREETING).map_err(|source| {
        let path = socket.to_path_buf();
        match source.kind() {
            io::ErrorKind::TimedOut => ServiceError::Silent { path, why: source.to_string() },
            _ => ServiceError::Unreachable { path, source },
        }
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unreachable)?;
    runtime.block_on(converse(socket, stream, request, trace))
}

/// What has come back.
struct Answer {
    /// Where a call has failed at once the status is here, else in the trailers.
    head: HeaderMap,
    body: BytesMut,
    trailers: Option<HeaderMap>,
}

async fn converse<'a>(
    socket: &Path,
    stream: StdStream,
    request: &InvokeRequest,
    trace: impl Iterator<Item = (&'static str, &'a str)>,
) -> Result<InvokeResponse, ServiceError> {
    let silent = |why: String| ServiceError::Silent { path: socket.to_path_buf(), why };
    let greeted = timeout(GREETING, greet(stream)).await;
    let greeted = greeted.map_err(|_| silent(format!("it has not greeted within {GREETING:?}")))?;
    let (sender, pings) = greeted.map_err(|error| silent(error.to_string()))?;
    let broken = |why: String| ServiceError::Broken { path: socket.to_path_buf(), why };
    let answer = tokio::select! {
        answer = timeout(LONGEST + GRACE, exchange(sender, request, trace)) => answer,
        why = absence(pings) => return Err(broken(why)),
    };
    let answer = answer.map_err(|_| broken(format!("not within {LONGEST:?}")))?;
    let Answer { head, body, trailers } = answer.map_err(|error| broken(error.to_string()))?;
    let said = trailers.as_ref().filter(|trailers| trailers.contains_key("grpc-status")).unwrap_or(&head);
    match text(said, "grpc-status") {
        "0" => message(&body).ok_or_else(|| broken("its answer cannot be read".to_owned())),
        status => Err(of_status(socket, status, text(said, "grpc-message"))),
    }
}

/// Says who speaks, and hears that somebody is there. The connection is driven beside the call, and ends with the runtime.
async fn greet(stream: StdStream) -> io::Result<(SendRequest<Bytes>, PingPong)> {
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    let (sender, mut connection) = Builder::new().handshake(stream).await.map_err(io::Error::other)?;
    let mut pings = connection.ping_pong().ok_or_else(|| io::Error::other("nobody can be asked"))?;
    tokio::spawn(connection);
    pings.ping(Ping::opaque()).await.map_err(io::Error::other)?;
    Ok((sender, pings))
}

async fn exchange<'a>(
    sender: SendRequest<Bytes>,
    request: &InvokeRequest,
    trace: impl Iterator<Item = (&'static str, &'a str)>,
) -> Result<Answer, h2::Error> {
    let mut head = Request::new(());
    *head.method_mut() = Method::POST;
    *head.uri_mut() = Uri::from_static(METHOD);
    let headers = head.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("te", HeaderValue::from_static("trailers"));
    let values = trace.filter_map(|(name, value)| Some((name, HeaderValue::from_str(value).ok()?)));
    values.for_each(|(name, value)| drop(headers.insert(name, value)));
    let (answered, mut body) = sender.ready().await?.send_request(head, false)?;
    body.send_data(framed(request), true)?;
    let (head, mut body) = answered.await?.into_parts();
    let mut read = BytesMut::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        read.put(piece);
        if read.len() > MAX_ANSWER {
            return Err(h2::Reason::ENHANCE_YOUR_CALM.into());
        }
    }
    Ok(Answer { head: head.headers, body: read, trailers: body.trailers().await? })
}

/// Ends once nobody is there any more.
async fn absence(mut pings: PingPong) -> String {
    loop {
        sleep(ALIVE).await;
        match timeout(SILENT, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return format!("it has been silent for {SILENT:?}"),
        }
    }
}

fn framed(request: &InvokeRequest) -> Bytes {
    let mut bytes = BytesMut::with_capacity(PREFIX + request.encoded_len());
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(request.encoded_len()).unwrap_or(u32::MAX));
    bytes.put_slice(&request.encode_to_vec());
    bytes.freeze()
}

/// The one message of an answer, which is not compressed.
fn message(body: &[u8]) -> Option<InvokeResponse> {
    let (prefix, message) = body.split_at_checked(PREFIX)?;
    let length = u32::from_be_bytes(*prefix.last_chunk()?);
    let is_whole = prefix[0] == 0 && usize::try_from(length) == Ok(message.len());
    InvokeResponse::decode(message).ok().filter(|_| is_whole)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn of_status(socket: &Path, status: &str, said: &str) -> ServiceError {
    let path = socket.to_path_buf();
    let refused = |code| ServiceError::Refused { path: path.clone(), code, msg: unescaped(said) };
    match status {
        UNIMPLEMENTED => ServiceError::Older { path },
        PERMISSION_DENIED => refused(IO),
        UNAVAILABLE => refused(TRY_AGAIN),
        _ => ServiceError::Broken { path, why: format!("{} (status {status} of gRPC)", unescaped(said)) },
    }
}

/// Text in a header, some bytes of which are `%` and two hexadecimal digits (gRPC over HTTP/2, "Status-Message").
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = after.split_at_checked(2).filter(|_| *first == b'%').and_then(|(digits, after)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let (byte, after) = escaped.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_framed_and_read() {
        let request = InvokeRequest { command: "ADD".to_owned(), ..InvokeRequest::default() };
        let framed = framed(&request);
        assert_eq!((framed[0], framed.len()), (0, PREFIX + usize::from(framed[4])));
        assert_eq!(InvokeRequest::decode(&framed[PREFIX..]).unwrap(), request);
        assert_eq!(message(&[0; PREFIX]), Some(InvokeResponse::default()));
        for odd in [&b""[..], &[0, 0, 0, 0, 1], &[1, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 8]] {
            assert_eq!(message(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn what_is_escaped_is_read() {
        for (text, meant) in [("a%20b", "a b"), ("%C3%A4%", "ä%"), ("%zz%4", "%zz%4"), ("", "")] {
            assert_eq!(unescaped(text), meant);
        }
    }

    #[test]
    fn a_status_says_whether_somebody_may_be_at_work() {
        let of = |status| of_status(Path::new("/s"), status, "why").may_be_done_here();
        assert_eq!(["12", "7"].map(of), [true; 2]);
        assert_eq!(["14", "2", "4", "13", "1", ""].map(of), [false; 6]);
    }
}
