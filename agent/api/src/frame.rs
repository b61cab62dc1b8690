//! Length-delimited JSON: a big-endian `u32` with the number of bytes that follow, then the JSON text.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest message, in bytes without the length. A node with 10,000 attachments reports in about 5 MB.
pub const MAX_MESSAGE: usize = 16 << 20;

/// The largest request, in bytes without the length: a GC list of tens of thousands of attachments fits.
pub const MAX_REQUEST: usize = 16 << 20;

/// The largest request of a user who may only ask.
pub const MAX_QUERY: usize = 1 << 20;

/// Bytes of the length before each message.
pub const LENGTH_BYTES: usize = 4;

/// Why a message could not be framed or read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length says more than the reader allows.
    #[error("a message of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// What the length says.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
    /// The bytes are not the JSON that was expected.
    #[error("not a message of this protocol: {0}")]
    Json(#[from] serde_json::Error),
}

/// Puts one message into bytes, its length first.
///
/// # Errors
/// [`FrameError::TooLong`] above [`MAX_MESSAGE`].
pub fn encode<T: Serialize>(message: &T) -> Result<Bytes, FrameError> {
    let body = json(message)?;
    let mut out = BytesMut::with_capacity(LENGTH_BYTES + body.len());
    out.put_u32(u32::try_from(body.len()).unwrap_or(u32::MAX));
    out.put_slice(&body);
    Ok(out.freeze())
}

/// One message's JSON, which its length goes before.
///
/// # Errors
/// [`FrameError::TooLong`] above [`MAX_MESSAGE`].
pub fn json<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let body = serde_json::to_vec(message)?;
    match body.len() {
        length if length > MAX_MESSAGE => Err(FrameError::TooLong { length, limit: MAX_MESSAGE }),
        _ => Ok(body),
    }
}

/// Takes one whole message's bytes off the front of `buffer`; none while it has not all arrived.
///
/// # Errors
/// [`FrameError::TooLong`] as soon as the length is known to exceed `limit`.
pub fn split(buffer: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(prefix) = buffer.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*prefix) as usize;
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    if buffer.len() < LENGTH_BYTES + length {
        return Ok(None);
    }
    buffer.advance(LENGTH_BYTES);
    Ok(Some(buffer.split_to(length).freeze()))
}

/// Reads the JSON of one message.
///
/// # Errors
/// [`FrameError::Json`] when it is not a `T`.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    Ok(serde_json::from_slice(body)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_length_over_the_limit_is_refused_before_the_body_arrives() {
        let mut buffer = BytesMut::from(&[0xff, 0xff, 0xff, 0xff][..]);
        assert!(matches!(split(&mut buffer, MAX_REQUEST), Err(FrameError::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn messages_survive_any_cut(texts in prop::collection::vec(".*", 1..5), cut in 1usize..64) {
            let wire: Vec<u8> = texts.iter().flat_map(|text| encode(text).unwrap()).collect();
            let mut buffer = BytesMut::new();
            let mut read = Vec::new();
            for piece in wire.chunks(cut) {
                buffer.extend_from_slice(piece);
                while let Some(body) = split(&mut buffer, MAX_MESSAGE).unwrap() {
                    read.push(decode::<String>(&body).unwrap());
                }
            }
            prop_assert_eq!(read, texts);
            prop_assert!(buffer.is_empty());
        }
    }
}
