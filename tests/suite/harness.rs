//! The harness tried on itself: each guard is also seen to fail.

mod desktop;
mod sample;
