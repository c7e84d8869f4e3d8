#include "hub/fetch_verdict.h"

namespace linnet {
namespace {

Error missing_or_private(const FetchSubject& subject, const HubOptions& options) {
  return {ErrorCode::kNotFound,
          "there is no " + subject.repository + " at " + options.endpoint + ", or it is private; check the name" +
              (options.token.empty() ? ", and for a private one set HF_TOKEN"
                                     : ", and that the account of your token (HF_TOKEN) may read it"),
          "MODEL"};
}

Error gated(const FetchSubject& subject, const HubOptions& options) {
  const std::string page = options.endpoint + "/" + subject.repository;
  if (options.token.empty()) {
    return {ErrorCode::kInvalidArgument,
            subject.repository + " is gated: accept its terms at " + page + ", make a token at " + options.endpoint +
                "/settings/tokens, and set HF_TOKEN to it",
            "HF_TOKEN"};
  }
  return {ErrorCode::kInvalidArgument,
          subject.repository + " is gated and the account of your token (HF_TOKEN) may not read it: ask for access at " + page +
              ", and let the token read gated repositories",
          "HF_TOKEN"};
}

Error refused(const FetchSubject& subject, const HubOptions& options, const HttpHead& head) {
  if (head.error_code == "GatedRepo") return gated(subject, options);
  if (head.error_code == "RepoNotFound") return missing_or_private(subject, options);
  if (options.token.empty()) {
    return {ErrorCode::kInvalidArgument,
            options.endpoint + " wants to know who asks for " + subject.repository + " (" + std::to_string(head.status) +
                "): it is private or gated, or there is none; set HF_TOKEN to a token of " + options.endpoint +
                "/settings/tokens",
            "HF_TOKEN"};
  }
  if (head.status == 401) {
    return {ErrorCode::kInvalidArgument,
            options.endpoint + " does not take your token (401); make a new one at " + options.endpoint +
                "/settings/tokens and set HF_TOKEN",
            "HF_TOKEN"};
  }
  return {ErrorCode::kInvalidArgument,
          options.endpoint + " forbids your token to read " + subject.repository + " (403)" +
              (head.error_message.empty() ? "" : ": " + head.error_message) + "; change what it may do at " + options.endpoint +
              "/settings/tokens",
          "HF_TOKEN"};
}

Error missing(const FetchSubject& subject, const HubOptions& options, const HttpHead& head) {
  if (head.error_code == "RevisionNotFound") {
    return {ErrorCode::kNotFound,
            subject.repository + " has no revision \"" + subject.revision + "\"; its branches and tags are at " +
                options.endpoint + "/" + subject.repository + "/tree/main",
            "MODEL"};
  }
  if (!subject.file.empty()) {
    return {ErrorCode::kNotFound,
            options.endpoint + " lists " + subject.file + " of " + subject.repository +
                " and does not have it (404); was the repository changed just now? Run the command again",
            subject.file};
  }
  if (head.error_code == "RepoNotFound") return missing_or_private(subject, options);
  return {ErrorCode::kNotFound,
          "there is no " + subject.repository + " with revision \"" + subject.revision + "\" at " + options.endpoint +
              "; check name and revision",
          "MODEL"};
}

// Trouble that may pass; the error is what is left to do when it did not.
FetchVerdict passing(ErrorCode code, const std::string& trouble, const std::string& advice,
                     std::optional<std::chrono::seconds> after = {}) {
  return {{code, trouble + "; " + advice, "HF_ENDPOINT"}, trouble, after};
}

FetchVerdict limited(const HubOptions& options, const HttpHead& head) {
  const std::string when = head.retry_after ? "in " + std::to_string(head.retry_after->count()) + " s" : "later";
  return passing(ErrorCode::kUnavailable, options.endpoint + " was asked too often (429)",
                 "run the command again " + when + (options.token.empty() ? ", or set HF_TOKEN: accounts may ask more" : ""),
                 head.retry_after);
}

FetchVerdict judge_status(const FetchSubject& subject, const HubOptions& options, const HttpHead& head) {
  const std::string status = std::to_string(head.status);
  if (head.status == 401 || head.status == 403) return {refused(subject, options, head)};
  if (head.status == 404) return {missing(subject, options, head)};
  if (head.status == 429) return limited(options, head);
  if (head.status >= 500 || head.status == 408) {
    return passing(ErrorCode::kUnavailable, options.endpoint + " is in trouble (it answers " + status + ")",
                   "run the command again later, what has come is kept", head.retry_after);
  }
  return {{ErrorCode::kIo,
           options.endpoint + " answers " + status + (head.error_message.empty() ? "" : " (" + head.error_message + ")") +
               " for " + (subject.file.empty() ? subject.repository : subject.file) + "; is HF_ENDPOINT a Hugging Face hub?",
           "HF_ENDPOINT"}};
}

FetchVerdict judge_transfer(const FetchAttempt& attempt, const HubOptions& options) {
  const std::string reason = " (" + attempt.detail + ")";
  const std::string trusted = options.authorities.empty() ? "certificates" : "the certificates in " + options.authorities;
  switch (attempt.code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT: {
      FetchVerdict verdict = passing(ErrorCode::kIo, "cannot reach " + options.endpoint + reason,
                                     "is this machine online? Behind a proxy set https_proxy, for a mirror HF_ENDPOINT");
      if (!attempt.reached_before) verdict.passing.clear();  // it will not be there in a second either
      return verdict;
    }
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CONNECT_ERROR:
      return {{ErrorCode::kIo,
               "no trusted connection to " + options.endpoint + reason + "; check this machine's clock and " + trusted +
                   " (SSL_CERT_FILE names others)",
               "HF_ENDPOINT"}};
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return {{ErrorCode::kIo, options.endpoint + " redirects to where nothing can be fetched" + reason + "; check HF_ENDPOINT",
               "HF_ENDPOINT"}};
    default:  // cut, reset or standing still: what has come is good
      return passing(ErrorCode::kIo, "the connection to " + options.endpoint + " broke" + reason,
                     "run the command again, what has come is kept");
  }
}

}  // namespace

std::optional<FetchVerdict> judge(const FetchAttempt& attempt, const FetchSubject& subject, const HubOptions& options) {
  if (options.stop.stop_requested()) return FetchVerdict{fetch_interrupted()};
  if (attempt.sink_error) return FetchVerdict{*attempt.sink_error};
  if (attempt.code != CURLE_OK) return judge_transfer(attempt, options);
  if (attempt.head.status == 200 || attempt.head.status == 206) return std::nullopt;
  return judge_status(subject, options, attempt.head);
}

Error fetch_interrupted() {
  return {ErrorCode::kCancelled, "interrupted; what has come is kept: run the same command again to go on", ""};
}

}  // namespace linnet
