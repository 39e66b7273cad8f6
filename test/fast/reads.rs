//! Reads a file of the system again and again, by several threads at once.

fn main() {
    let read = || (0..1000).for_each(|_| drop(std::fs::read("/etc/passwd").expect("a file every system has")));
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(read)).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a thread that ends"));
}
