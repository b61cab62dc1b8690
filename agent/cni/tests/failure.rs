//! CNI's errors in gRPC's status.
#![allow(clippy::unwrap_used, reason = "a test")]

use shunt_cni::{DetailError, Failure};
use tonic::{Code, Status};

fn failure(code: u32) -> Failure {
    Failure { code, msg: "host port 80 is taken".to_owned(), details: "by ns/other".to_owned() }
}

#[test]
fn an_error_of_cni_comes_back_out_of_its_status() {
    for code in [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 50, 51, 99, 100, 106, u32::MAX] {
        let status = failure(code).to_status();
        assert_ne!(status.code(), Code::Ok, "code {code}");
        assert_eq!(status.message(), "host port 80 is taken");
        assert_eq!(Failure::of_status(&status).unwrap(), Some(failure(code)));
    }
}

#[test]
fn codes_that_a_client_acts_on_are_grpcs() {
    let cases = [
        (3, Code::NotFound),
        (7, Code::InvalidArgument),
        (11, Code::Unavailable),
        (50, Code::Unavailable),
        (101, Code::ResourceExhausted),
        (102, Code::AlreadyExists),
    ];
    for (code, grpc) in cases {
        assert_eq!(failure(code).to_status().code(), grpc, "code {code}");
    }
}

/// The bytes of google.rpc.Status (code 5, message "m", one Any) as google/rpc/status.proto says.
#[test]
fn details_are_a_google_rpc_status() {
    let status = Failure { code: 3, msg: "m".to_owned(), details: String::new() }.to_status();
    let mut wire = b"\x08\x05\x12\x01m\x1a\x2f\x0a\x26type.googleapis.com/shunt.cni.v1.Error".to_vec();
    wire.extend(b"\x12\x05\x08\x03\x12\x01m");
    assert_eq!(status.details(), wire);
}

#[test]
fn a_status_of_something_else_holds_no_error() {
    assert_eq!(Failure::of_status(&Status::deadline_exceeded("late")).unwrap(), None);
}

#[test]
fn broken_details_are_said_to_be_so() {
    let status = Status::with_details(Code::Internal, "", b"\xff".to_vec().into());
    assert!(matches!(Failure::of_status(&status), Err(DetailError::Status(_))));
    let any = b"\x1a\x19\x0a\x14x/shunt.cni.v1.Error\x12\x01\xff".to_vec();
    let status = Status::with_details(Code::Internal, "", any.into());
    assert!(matches!(Failure::of_status(&status), Err(DetailError::Error(_))));
}

/// Clients limit what they accept of metadata, many to 8 KiB for all of it.
#[test]
fn however_long_the_texts_are_the_trailers_are_short_and_have_the_code() {
    for text in ["x", "ä", "語", "%"] {
        let long = Failure { code: 7, msg: text.repeat(20_000), details: text.repeat(20_000) };
        let status = long.to_status();
        let mut trailers = http::HeaderMap::new();
        status.add_header(&mut trailers).unwrap();
        let bytes: usize = trailers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!(bytes < 4096, "{bytes} bytes of {text}");
        let read = Failure::of_status(&status).unwrap().unwrap();
        assert_eq!(read.code, 7);
        assert!(read.msg.starts_with(text) && read.msg.len() <= 1024, "{}", read.msg);
        for cut in [status.message(), &read.msg, &read.details] {
            assert!(cut.ends_with(&format!("… (cut: {} bytes)", long.msg.len())), "{cut}");
        }
    }
}
