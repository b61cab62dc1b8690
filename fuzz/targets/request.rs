//! The agent's socket: bytes of a client, arriving in pieces. No frame is over its limit, and a request that was
//! understood can be sent again.
#![no_main]
#![allow(clippy::unwrap_used, reason = "a target that panics has found something")]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use shunt_agent_api::{Envelope, Request, frame};

fuzz_target!(|input: &[u8]| {
    let (&size, stream) = input.split_first().unwrap_or((&0, &[]));
    let mut buffer = BytesMut::new();
    for piece in stream.chunks(usize::from(size).max(1)) {
        buffer.extend_from_slice(piece);
        loop {
            match frame::split(&mut buffer, frame::MAX_REQUEST) {
                Ok(None) => break,
                Ok(Some(body)) => read(&body),
                Err(_) => return,
            }
        }
    }
    // The body without its length too: a fuzzer seldom guesses four bytes that fit.
    read(stream);
});

fn read(body: &[u8]) {
    assert!(body.len() <= frame::MAX_REQUEST);
    if let Ok(request) = frame::decode::<Envelope<Request>>(body) {
        let mut sent = BytesMut::from(&frame::encode(&request).unwrap()[..]);
        let again = frame::split(&mut sent, frame::MAX_MESSAGE).unwrap().unwrap();
        assert_eq!(frame::decode::<Envelope<Request>>(&again).unwrap().body, request.body);
    }
}
