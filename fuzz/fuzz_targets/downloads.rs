#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::hold("downloads", bytes));
