//! The call slot: the fixed place in a thread where its pending call lives.
//!
//! A call that returns at once never becomes more than a value on the stack of `start`; one that must wait is a future in the
//! slot, polled again whenever the thread is woken, by whichever core holds the thread. There is no allocation.
//!
//! The future borrows what `start` hands it, the slot's neighbour `owner`. That is sound because [`Slot`] is only reached
//! through [`Slotted`], which keeps `owner` and slot together, never moves once shared (it sits in an `Arc`), and empties the
//! slot before `owner` goes.

use core::cell::UnsafeCell;
use core::future::Future;
use core::marker::PhantomPinned;
use core::mem::MaybeUninit;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll};

/// Bytes a pending call may occupy.
pub const SLOT_SIZE: usize = 2048;

#[repr(C, align(16))]
struct Space(MaybeUninit<[u8; SLOT_SIZE]>);

struct Vtable {
    poll: unsafe fn(*mut u8, &mut Context<'_>) -> Poll<isize>,
    drop: unsafe fn(*mut u8),
}

/// Storage for one pending call.
pub struct Slot {
    space: UnsafeCell<Space>,
    vtable: UnsafeCell<Option<&'static Vtable>>,
    /// Held while somebody is in `start`, `poll` or `clear`; a second entry is a kernel bug and panics.
    busy: AtomicBool,
}

// SAFETY: the contents are reached only while `busy` is held, and only `Send` futures are stored.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

/// A handler: turns a borrow of the owner and the call's words into a future.
pub trait Handler<'a, T: ?Sized, A> {
    /// The future; it lives as long as the borrow.
    type Future: Future<Output = isize> + Send + 'a;
    /// Makes it; nothing runs before it is polled.
    fn call(self, owner: &'a T, args: A) -> Self::Future;
}

impl<'a, T, A, F, Fut> Handler<'a, T, A> for F
where
    T: ?Sized + 'a,
    F: FnOnce(&'a T, A) -> Fut,
    Fut: Future<Output = isize> + Send + 'a,
{
    type Future = Fut;
    fn call(self, owner: &'a T, args: A) -> Fut {
        self(owner, args)
    }
}

struct Busy<'a>(&'a AtomicBool);

impl<'a> Busy<'a> {
    fn enter(flag: &'a AtomicBool) -> Busy<'a> {
        assert!(!flag.swap(true, Ordering::Acquire), "two cores in one call slot");
        Busy(flag)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

impl Slot {
    pub const fn new() -> Slot {
        Slot {
            space: UnsafeCell::new(Space(MaybeUninit::uninit())),
            vtable: UnsafeCell::new(None),
            busy: AtomicBool::new(false),
        }
    }

    /// Where the call is. No reference to it is made: a future that waits points into itself, and may be pointed at.
    fn space(&self) -> *mut u8 {
        self.space.get().cast()
    }

    /// Builds a call in the slot and polls it once. `Ready` leaves the slot empty.
    ///
    /// The handler is higher-ranked over the owner's lifetime, so its future can borrow nothing but the owner and `'static` data.
    fn start<T: ?Sized, A, H>(&self, owner: &T, handler: H, args: A, cx: &mut Context<'_>) -> Poll<isize>
    where
        H: for<'a> Handler<'a, T, A>,
    {
        fn place<F: Future<Output = isize>>(space: *mut u8, make: impl FnOnce() -> F) -> &'static Vtable {
            const {
                assert!(size_of::<F>() <= SLOT_SIZE, "a call's future is larger than the slot");
                assert!(align_of::<F>() <= 16);
            }
            // SAFETY: `space` is SLOT_SIZE bytes aligned to 16, unoccupied, and F fits (asserted above).
            unsafe { space.cast::<F>().write(make()) };
            const {
                &Vtable {
                    // SAFETY: called with the pointer written above, before its drop; it does not move while in the slot.
                    poll: |space, cx| unsafe { Pin::new_unchecked(&mut *space.cast::<F>()) }.poll(cx),
                    // SAFETY: as above, and once.
                    drop: |space| unsafe { space.cast::<F>().drop_in_place() },
                }
            }
        }

        let _busy = Busy::enter(&self.busy);
        // SAFETY: `busy` gives exclusive access to the cell.
        let (space, vtable) = (self.space(), unsafe { &mut *self.vtable.get() });
        assert!(vtable.is_none(), "a second call in a thread's slot");
        let table = place(space, || handler.call(owner, args));
        // SAFETY: just placed.
        match unsafe { (table.poll)(space, cx) } {
            Poll::Ready(value) => {
                // SAFETY: placed above and not dropped since.
                unsafe { (table.drop)(space) };
                Poll::Ready(value)
            }
            Poll::Pending => {
                *vtable = Some(table);
                Poll::Pending
            }
        }
    }

    /// Polls the pending call; `None` when the slot is empty.
    fn poll(&self, cx: &mut Context<'_>) -> Option<Poll<isize>> {
        let _busy = Busy::enter(&self.busy);
        // SAFETY: `busy` gives exclusive access to the cell.
        let (space, vtable) = (self.space(), unsafe { &mut *self.vtable.get() });
        let table = (*vtable)?;
        // SAFETY: the slot is occupied by the future this table belongs to.
        let result = unsafe { (table.poll)(space, cx) };
        if result.is_ready() {
            *vtable = None;
            // SAFETY: as above, and the table has been taken out, so it is dropped once.
            unsafe { (table.drop)(space) };
        }
        Some(result)
    }

    /// Drops a pending call, if there is one; its registrations go with it.
    fn clear(&self) {
        let _busy = Busy::enter(&self.busy);
        // SAFETY: `busy` gives exclusive access to the cell.
        let (space, vtable) = (self.space(), unsafe { &mut *self.vtable.get() });
        if let Some(table) = vtable.take() {
            // SAFETY: the slot was occupied and the table is taken out.
            unsafe { (table.drop)(space) };
        }
    }
}

/// An owner and its slot, kept together: what the slot's future borrows lives as long as the slot.
///
/// A pending call's future points at the owner, so nobody pins one without promising that it stays where it is:
///
/// ```compile_fail,E0277
/// let slotted = janua_rt::slot::Slotted::new(0);
/// let pinned = core::pin::Pin::new(&slotted);
/// ```
pub struct Slotted<T> {
    // Dropped first: see the field order rule of Rust. `Drop` below makes it explicit.
    slot: Slot,
    owner: T,
    // The future in the slot points at `owner`: who has one pinned may not move it, whatever `T` is.
    _pinned: PhantomPinned,
}

impl<T> Slotted<T> {
    pub const fn new(owner: T) -> Slotted<T> {
        Slotted { slot: Slot::new(), owner, _pinned: PhantomPinned }
    }

    pub fn owner(&self) -> &T {
        &self.owner
    }

    /// Builds a call and polls it once. `self` must not move while a call is pending: it is pinned.
    pub fn start<A, H>(self: Pin<&Self>, handler: H, args: A, cx: &mut Context<'_>) -> Poll<isize>
    where
        H: for<'a> Handler<'a, T, A>,
    {
        let this = self.get_ref();
        this.slot.start(&this.owner, handler, args, cx)
    }

    /// Polls the pending call; `None` when there is none.
    pub fn poll(self: Pin<&Self>, cx: &mut Context<'_>) -> Option<Poll<isize>> {
        self.get_ref().slot.poll(cx)
    }

    /// Drops the pending call, if there is one.
    pub fn clear(self: Pin<&Self>) {
        self.get_ref().slot.clear();
    }
}

impl<T> Drop for Slotted<T> {
    fn drop(&mut self) {
        self.slot.clear();
    }
}
