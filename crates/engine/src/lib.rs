//! Makes it happen: the loop, processes, storage, the keychain and the clock.

pub mod world;
