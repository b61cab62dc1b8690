use netlink_sys::SocketAddr;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::Uid;

use super::*;
use crate::link::{Link, Selector, link, links, set_link_up};

#[test]
fn a_name_is_free_or_taken_and_the_socket_goes_on_as_before() {
    let mut connection = Connection::open().unwrap();
    for _ in 0..2 {
        assert!(connection.has_no_link("shunt-no-link").unwrap());
        assert!(!connection.has_no_link("lo").unwrap());
        assert_eq!(connection.get(link(Selector::Name("lo"))).unwrap().unwrap().name, "lo");
    }
}

#[test]
fn of_a_batch_the_kernel_says_what_failed_and_what_was_done_though_asked_of_the_last_only() {
    let mut connection = Connection::open().unwrap();
    let (there, missing) = (Selector::Name("lo"), Selector::Name("shunt-no-link"));
    for order in [[there, missing, there], [missing, there, missing], [missing, missing, there]] {
        let said = connection.batch(order.map(|one| link(one).any()).into()).unwrap();
        for (selector, said) in order.iter().zip(said) {
            match selector {
                Selector::Name("lo") => assert_eq!(said.unwrap().first::<Link>().unwrap().name, "lo"),
                _ => assert!(said.unwrap_err().is_missing()),
            }
        }
    }
    let said = connection.batch(vec![link(missing).any(), links().any()]).unwrap();
    assert!(said[0].as_ref().is_err_and(NetlinkError::is_missing));
    assert!(said[1].as_ref().unwrap().all::<Link>().iter().any(|link| link.name == "lo"));
}

#[test]
fn a_refusal_says_what_was_asked_and_what_the_kernel_dislikes() {
    // A link without a kind.
    let error =
        Connection::open().unwrap().run(Request::raw("add nothing", 16, 0x600, vec![0; 16])).unwrap_err();
    let NetlinkError::Refused { what, .. } = &error else { panic!("{error}") };
    assert_eq!(what, "add nothing");
    assert!(error.to_string().starts_with("could not add nothing: "), "{error}");
}

/// A message in a datagram.
fn message(kind: u16, flags: u16, sequence: u32, payload: Vec<u8>) -> Vec<u8> {
    let mut wire = Vec::new();
    Request::<Link>::raw("", kind, flags, payload).emit(sequence, false, &mut wire);
    wire
}

fn ends(datagrams: &[Vec<u8>]) -> (Vec<End>, Vec<(usize, Vec<u8>)>) {
    let (mut ends, mut parts) = (vec![End::default(), End::default()], Vec::new());
    for datagram in datagrams {
        take(datagram, 7, &mut ends, &mut |place, payload| parts.push((place, payload.to_vec()))).unwrap();
    }
    (ends, parts)
}

#[test]
fn a_dump_that_is_interrupted_anywhere_is_an_error_that_has_it_repeated() {
    const DONE: u16 = 3;
    const INTERRUPTED: u16 = 0x10;
    let dump = links().any();
    for (flags, fails) in [([0, 0], false), ([INTERRUPTED, 0], true), ([0, INTERRUPTED], true)] {
        let datagrams = [message(16, flags[0], 8, vec![1; 4]), message(DONE, flags[1], 8, vec![0; 4])];
        let (mut ends, parts) = ends(&datagrams);
        assert_eq!(parts, [(1, vec![1; 4])]);
        let outcome = ends.pop().unwrap().outcome(&dump);
        let interrupted = matches!(outcome, Err(NetlinkError::Interrupted { tries: DUMP_TRIES, .. }));
        assert_eq!(interrupted, fails, "{outcome:?}");
    }
}

#[test]
fn an_answer_to_an_earlier_request_is_skipped() {
    let (ends, parts) = ends(&[message(16, 0, 6, vec![1; 4]), message(3, 0, 6, vec![0; 4])]);
    assert!(parts.is_empty() && ends.iter().all(|end| end.said.is_none()));
}

/// Does something in a network namespace of its own that goes with its thread; not without the right to make one.
fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let thread = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok().then(work));
    let done = thread.join().unwrap();
    assert!(done.is_some() || !Uid::effective().is_root(), "root may make a network namespace");
    done
}

/// A refusal, as the kernel would say it of the request with this sequence number.
fn forged(sequence: u32) -> Vec<u8> {
    message(2, 0, sequence, [&(-1i32).to_ne_bytes()[..], &[0; 16]].concat())
}

/// A process with `CAP_NET_ADMIN` may send to any routing socket, and needs no guess of its sequence numbers: they begin at one.
#[test]
fn a_datagram_that_another_process_sends_is_neither_an_answer_nor_an_error() {
    apart(|| {
        let mut connection = Connection::open().unwrap();
        let own = SocketAddr::new(connection.socket.port(), 0);
        let forger = netlink_sys::Socket::new(NETLINK_ROUTE).unwrap();
        for sequence in 1..=200 {
            // Refused at the sender, as the socket is connected to the kernel.
            let sent = forger.send_to(&forged(sequence), &own, 0);
            assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
            assert_eq!(connection.get(link(Selector::Name("lo"))).unwrap().unwrap().index, 1);
        }
    });
}

#[test]
fn a_multicast_of_another_process_is_not_heard_and_one_of_the_kernels_is() {
    apart(|| {
        const LINKS: u32 = 1;
        let mut listener = Socket::listen(NETLINK_ROUTE as i32, &[LINKS], None, |_| Ok(())).unwrap();
        let forger = netlink_sys::Socket::new(NETLINK_ROUTE).unwrap();
        forger.send_to(&forged(0), &SocketAddr::new(0, LINKS), 0).unwrap();
        let heard = listener.receive();
        assert!(
            matches!(&heard, Err(NetlinkError::Socket(error)) if error.kind() == io::ErrorKind::WouldBlock)
        );
        Connection::open().unwrap().run(set_link_up(Selector::Index(1))).unwrap();
        assert!(messages(listener.receive().unwrap()).all(|message| message.unwrap().message_type() == 16));
    });
}

#[test]
fn a_datagram_that_does_not_fit_is_an_error_and_not_cut() {
    let mut socket = Socket::open(NETLINK_ROUTE as i32).unwrap().with_room(64);
    let mut wire = Vec::new();
    link(Selector::Name("lo")).emit(1, false, &mut wire);
    socket.send(&wire).unwrap();
    assert!(matches!(socket.receive(), Err(NetlinkError::Truncated { length }) if length > 64));
}
