// The ranking of Sphinx's search, but pages for developers come after those for users.
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    /^(extending\/|whats_new)/.test(page) ? score / 4 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
