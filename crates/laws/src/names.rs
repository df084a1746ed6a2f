//! Questions about names: no bytes stop whoever answers, an answer is no question, and only one name is meant.

use egress::hostile::{Heard, Reply, question};

use crate::shown;

pub fn law(bytes: &[u8]) {
    let question = match question(bytes) {
        Heard::Noise => return,
        Heard::Answer(answer) => return is_an_answer(bytes, &answer),
        Heard::Question(question) => question,
    };
    match &question.name {
        Ok(name) => {
            // Each label is there as it was asked for: no dot is made up, and none is left out.
            let labels: Vec<Vec<u8>> = name.as_str().split('.').map(|label| label.as_bytes().to_vec()).collect();
            assert!(labels.iter().all(|label| (1..=63).contains(&label.len())));
            for label in labels {
                let mut written = vec![label.len() as u8];
                written.extend(label);
                assert!(
                    bytes.windows(written.len()).any(|part| part.eq_ignore_ascii_case(&written)),
                    "{name} was not asked for"
                );
            }
        }
        Err(text) => {
            shown::is_one_line(text);
            assert!(text.len() <= 256);
        }
    }
    let address = "198.18.1.1".parse().expect("an address");
    for reply in [Reply::Address(address), Reply::Nothing, Reply::NoSuchName, Reply::Fails] {
        if let Some(answer) = question.answer(&reply) {
            is_an_answer(bytes, &answer);
        }
    }
}

fn is_an_answer(asked: &[u8], answer: &[u8]) {
    assert_eq!(answer[..2], asked[..2], "it is to another question");
    assert!(answer.len() <= 1232, "{} bytes", answer.len());
    assert!(matches!(question(answer), Heard::Noise), "whoever is asked by us would be answered by us");
}
