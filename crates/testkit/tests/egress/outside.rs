use belljar_testkit::twice::Check;
pub const ALL: &[(&str, Check)] = &[];
