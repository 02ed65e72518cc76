# The numbers of R for one csv with the columns y and p (and w), as lines "name value".
# Rscript peers.R FILE; needs rms, MASS, pROC and sandwich.
suppressMessages({library(rms); library(MASS); library(pROC); library(sandwich)})
d <- read.csv(commandArgs(TRUE)[1]); y <- d$y; p <- d$p; w <- d$w
z <- qlogis(p); n <- length(y)
tell <- function(name, values) cat(sprintf("%s %.15g\n", paste0(name, names(values)), values), sep = "")
tight <- glm.control(epsilon = 1e-14, maxit = 100)

# observed and expected
rate <- binom.test(sum(y), n)$conf.int
tell("O/E", c(" estimate" = sum(y) / sum(p), " low" = rate[1] * n / sum(p), " high" = rate[2] * n / sum(p)))

# calibration in the large; intercept and slope
large <- glm(y ~ offset(z) + 1, family = binomial, control = tight)
both <- glm(y ~ z, family = binomial, control = tight)
fixed <- glm(y ~ offset(z) - 1, family = binomial)
ends <- function(name, estimate, error, interval) {
  tell(name, c(" estimate" = estimate, " se" = error, " confint low" = interval[1], " confint high" = interval[2]))
}
ends("large", coef(large)[[1]], sqrt(vcov(large)[1, 1]), suppressMessages(unname(confint(large))))
profiled <- suppressMessages(unname(confint(both)))
for (k in 1:2) ends(c("intercept", "slope")[k], coef(both)[[k]], sqrt(vcov(both)[k, k]), profiled[k, ])
held <- list(
  large = function(a) sum(-2 * dbinom(y, 1, plogis(a + z), log = TRUE)),
  intercept = function(a) glm(y ~ z + offset(rep(a, n)) - 1, family = binomial, control = tight)$deviance,
  slope = function(b) glm(y ~ offset(b * z), family = binomial, control = tight)$deviance
)
of <- list(large = large, intercept = both, slope = both)
for (name in names(held)) {
  k <- if (name == "slope") 2 else 1
  center <- coef(of[[name]])[[k]]; error <- sqrt(vcov(of[[name]])[k, k])
  away <- function(c) held[[name]](c) - of[[name]]$deviance - qchisq(0.95, 1)
  tell(name, c(
    " low" = uniroot(away, center - c(5, 0.1) * error, tol = 1e-12)$root,
    " high" = uniroot(away, center + c(0.1, 5) * error, tol = 1e-12)$root
  ))
}
tell("LR ", c(
  "large" = fixed$deviance - large$deviance, "slope" = large$deviance - both$deviance,
  "both" = fixed$deviance - both$deviance
))

# rms::val.prob, and the fits and intervals of CalibrationCurves::val.prob.ci.2
v <- val.prob(p, y, pl = FALSE)
tell("rms ", v[c("C (ROC)", "R2", "U:Chi-sq", "U:p", "Brier", "Intercept", "Slope", "S:z", "S:p", "Eavg", "E90", "Emax")])
f <- lrm.fit(z, y); f2 <- lrm.fit(offset = z, y = y)
tell("ci.2 ", c("Intercept" = unname(f2$coef[1]), "Slope" = unname(f$coef[2])))
wald <- c(confint.default(f2)[1, ], confint.default(f)[2, ])
names(wald) <- c("Intercept low", "Intercept high", "Slope low", "Slope high")
tell("ci.2 ", wald)
tell("ci.2 ", c("R2" = unname(f$stats["R2"]), "Brier scaled" = 1 - mean((p - y)^2) / (mean(y) * (1 - mean(y)))))
tell("pROC ", c("auc" = as.numeric(auc(y, p, levels = 0:1, direction = "<"))))
null <- mean(y); tell("", c("log loss" = -mean(dbinom(y, 1, p, log = TRUE))))

# ICI by loess, at each row ("direct"), and as loess() does it by default
for (surface in c("direct", "interpolate")) {
  s <- loess(y ~ p, degree = 2, control = loess.control(surface = surface, statistics = "approximate"))
  e <- abs(pmin(pmax(fitted(s), 0), 1) - p)
  tell(paste0(surface, " "), c("ICI" = mean(e), "E50" = median(e), "E90" = unname(quantile(e, 0.9)), "Emax" = max(e)))
}

# weights: the sandwich
weighted <- suppressWarnings(list(
  large = glm(y ~ offset(z) + 1, family = binomial, weights = w, control = tight),
  both = glm(y ~ z, family = binomial, weights = w, control = tight)
))
tell("weighted ", c(
  "large" = coef(weighted$large)[[1]], "large se" = sqrt(sandwich(weighted$large)[1, 1]),
  "slope" = coef(weighted$both)[[2]], "slope se" = sqrt(sandwich(weighted$both)[2, 2])
))
tell("version ", c("R" = as.numeric(paste0(R.version$major, ".", sub("\\..*", "", R.version$minor)))))
