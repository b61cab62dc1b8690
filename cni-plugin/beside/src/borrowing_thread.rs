//! A thread that is lent what is on its maker's stack, and has ended when this is dropped.
//!
//! It is the C library's, and not the standard library's, whose threads are given what this one has no use for: a name, an
//! alternate stack, a handle that others may keep. That takes four times as long (0.04 ms).

use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, size_of};
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc::{
    c_void, cpu_set_t, pthread_attr_destroy, pthread_attr_init, pthread_attr_setstack,
    pthread_attr_setstacksize, pthread_create, pthread_join, pthread_setaffinity_np, pthread_t,
};

use super::processors::Processors;

/// Bytes of its stack.
const STACK: usize = 512 << 10;

/// The stack of whoever comes first: it is there already, and a page of it costs nothing until it is written to. One of its own would have to be
/// mapped, and taken away again, of which the other processor has to be told. Nothing warns at its end; what is done aside takes a thirtieth of it.
#[repr(C, align(16))]
struct Stack(UnsafeCell<[u8; STACK]>);

// SAFETY: it is one thread's at a time.
unsafe impl Sync for Stack {}

static FIRST_STACK: Stack = Stack(UnsafeCell::new([0; STACK]));
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// It runs while this lives, and borrows for as long.
#[derive(Debug)]
pub(crate) struct BorrowingThread<'a> {
    thread: pthread_t,
    /// Whether it has the stack of whoever comes first.
    has_first_stack: bool,
    borrowed: PhantomData<&'a ()>,
}

impl<'a> BorrowingThread<'a> {
    /// Starts it, to do `work`, which must not panic.
    ///
    /// # Errors
    /// There may be no more threads.
    ///
    /// # Safety
    /// It has to be dropped, and not forgotten, before what is borrowed goes.
    pub(crate) unsafe fn start<W: Fn() + Sync>(work: &'a W) -> io::Result<Self> {
        let (mut attributes, mut thread) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let argument = from_ref(work).cast_mut().cast();
        let has_first_stack = !IS_TAKEN.swap(true, Ordering::Acquire);
        // SAFETY: the attributes are made before they are used, the stack is nobody else's, and the thread gets what it expects.
        let refused = unsafe {
            pthread_attr_init(attributes.as_mut_ptr());
            match has_first_stack {
                true => pthread_attr_setstack(attributes.as_mut_ptr(), FIRST_STACK.0.get().cast(), STACK),
                false => pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK),
            };
            let refused = pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run::<W>, argument);
            pthread_attr_destroy(attributes.as_mut_ptr());
            refused
        };
        match refused {
            // SAFETY: it was made.
            0 => Ok(Self { thread: unsafe { thread.assume_init() }, has_first_stack, borrowed: PhantomData }),
            errno => {
                give_back_first_stack(has_first_stack);
                Err(io::Error::from_raw_os_error(errno))
            }
        }
    }

    /// Moves it to one of these processors. Where the kernel refuses, it goes on where it is.
    ///
    /// # Safety
    /// It has not ended: C libraries take the calling thread for one that has.
    pub(crate) unsafe fn keep_to(&self, processors: &Processors) {
        // SAFETY: a thread that was not joined has a valid handle. The set is read, and has the size that is said.
        let _refused =
            unsafe { pthread_setaffinity_np(self.thread, size_of::<cpu_set_t>(), processors.as_raw()) };
    }
}

impl Drop for BorrowingThread<'_> {
    /// Waits until it has ended.
    fn drop(&mut self) {
        // SAFETY: it is joined once, here.
        let _cannot_fail = unsafe { pthread_join(self.thread, null_mut()) };
        give_back_first_stack(self.has_first_stack);
    }
}

fn give_back_first_stack(is_had: bool) {
    if is_had {
        IS_TAKEN.store(false, Ordering::Release);
    }
}

extern "C" fn run<W: Fn() + Sync>(work: *mut c_void) -> *mut c_void {
    // SAFETY: it is what `start` borrowed, and does not go before this thread has ended.
    let work = unsafe { &*work.cast::<W>() };
    work();
    null_mut()
}
