//! Constrained answers by `llguidance`: a grammar compiled against a vocabulary, and its state in one sequence.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::failure::{guarded, invalid, utf8, Failure, FailureKind, Outcome};

/// The vocabulary as llguidance wants it. One per tokenizer; building it takes tens of milliseconds.
pub struct GrammarEnvironment {
    factory: ParserFactory,
}

struct Vocabulary {
    trie: TokTrie,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.greedy_tokenize(bytes)
    }

    /// Greedy tokens are not the tokenizer's own, so they must not be forced on the model.
    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

pub fn grammar_environment(bytes: &[u8], byte_ends: &[u64], special: &[u8], eos: i64) -> Outcome<Box<GrammarEnvironment>> {
    guarded(|| {
        let eos = u32::try_from(eos)
            .ok()
            .filter(|&id| (id as usize) < byte_ends.len())
            .ok_or_else(|| unsupported("a grammar needs a tokenizer with an end token"))?;
        let mut start = 0;
        let mut words = Vec::with_capacity(byte_ends.len());
        for (id, &end) in byte_ends.iter().enumerate() {
            words.push(if special[id] != 0 {
                // Special tokens are reachable by number only; no text spells them.
                [&[TokTrie::SPECIAL_TOKEN_MARKER], format!("[{id}]").as_bytes()].concat()
            } else {
                bytes[start..end as usize].to_vec()
            });
            start = end as usize;
        }
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, eos), &words);
        let environment: TokEnv = Arc::new(Vocabulary { trie });
        let mut factory = ParserFactory::new_simple(&environment).map_err(|e| unsupported(&e.to_string()))?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Box::new(GrammarEnvironment { factory }))
    })
}

fn unsupported(message: &str) -> Failure {
    Failure { kind: FailureKind::Unsupported, message: message.to_owned() }
}

pub struct GrammarState {
    matcher: Matcher,
    vocabulary_size: u32,
}

pub fn compile_grammar(environment: &GrammarEnvironment, kind: &str, source: &[u8]) -> Outcome<Box<GrammarState>> {
    guarded(|| {
        let source = utf8(source, "the grammar")?;
        let failed = |e: &dyn std::fmt::Display| invalid(format!("{kind}: {e}"));
        let grammar = TopLevelGrammar::from_tagged_str(kind, source).map_err(|e| failed(&e))?;
        let parser = environment.factory.create_parser(grammar).map_err(|e| failed(&e))?;
        let matcher = Matcher::new(Ok(parser));
        match matcher.get_error() {
            Some(e) => Err(failed(&e)),
            None => {
                let vocabulary_size = environment.factory.tok_env().tok_trie().vocab_size() as u32;
                Ok(Box::new(GrammarState { matcher, vocabulary_size }))
            }
        }
    })
}

impl GrammarState {
    pub fn mask(&mut self, words: &mut [u32]) -> Outcome<()> {
        guarded(|| {
            let mask = self.matcher.compute_mask_or_eos().map_err(|e| unsupported(&e.to_string()))?;
            let n = words.len().min(mask.as_slice().len());
            words.fill(0);
            words[..n].copy_from_slice(&mask.as_slice()[..n]);
            Ok(())
        })
    }

    pub fn consume(&mut self, token: u32) -> Outcome<()> {
        guarded(|| {
            let refused = || invalid(format!("token {token} does not fit the grammar here"));
            if token >= self.vocabulary_size || self.matcher.is_stopped() {
                return Err(refused());
            }
            match self.matcher.try_consume_tokens(&[token]) {
                Ok(1) => Ok(()),
                Ok(_) => Err(refused()),
                Err(e) => Err(unsupported(&e.to_string())),
            }
        })
    }

    pub fn accepting(&mut self) -> Outcome<bool> {
        guarded(|| self.matcher.is_accepting().map_err(|e| unsupported(&e.to_string())))
    }

    pub fn finished(&self) -> bool {
        self.matcher.is_stopped()
    }

    pub fn fork(&self) -> Outcome<Box<GrammarState>> {
        guarded(|| Ok(Box::new(GrammarState { matcher: self.matcher.deep_clone(), vocabulary_size: self.vocabulary_size })))
    }
}
