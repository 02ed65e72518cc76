# rms::validate on the rows of a csv (columns x1 .. xp and y), and the rows that it drew.
# Rscript internal.R FILE B DRAWN_CSV: lines "name value"; needs rms.
suppressMessages(library(rms))
given <- commandArgs(TRUE); d <- read.csv(given[1]); B <- as.integer(given[2])
f <- lrm(y ~ ., data = d, x = TRUE, y = TRUE, tol = 1e-14, eps = 1e-12, maxit = 100)
set.seed(7); v <- validate(f, B = B, tol = 1e-14, eps = 1e-12, maxit = 100)
set.seed(7); drawn <- t(replicate(B, sample(nrow(d), replace = TRUE)))
write.table(drawn - 1L, given[3], sep = ",", row.names = FALSE, col.names = FALSE)
for (name in c("Dxy", "Intercept", "Slope", "B"))
  for (column in c("index.orig", "training", "test", "index.corrected"))
    cat(sprintf("%s %s %.15g\n", name, column, v[name, column]))
k <- length(coef(f)) - 1; G <- f$stats[["Model L.R."]]
cat(sprintf("heuristic slope %.15g\n", (G - k) / G))
