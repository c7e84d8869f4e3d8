// The server behind TLS and behind a Unix socket.
#include "http/transport.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/testing/temp_folder.h"
#include "http/raw_client.h"
#include "http/test_server.h"

namespace linnet::http {
namespace {

namespace fs = std::filesystem;

TlsFiles make_certificate(const testing::TempFolder& folder) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  CHECK(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  TlsFiles files{.certificate = folder.file("cert.pem"), .key = folder.file("key.pem")};
  std::FILE* certificate_file = std::fopen(files.certificate.c_str(), "w");
  std::FILE* key_file = std::fopen(files.key.c_str(), "w");
  CHECK(PEM_write_X509(certificate_file, certificate.get()) == 1);
  CHECK(PEM_write_PrivateKey(key_file, key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  std::fclose(certificate_file);
  std::fclose(key_file);
  return files;
}

// A blocking TLS client over a socket of RawClient's.
class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port) : socket_(port) {
    std::signal(SIGPIPE, SIG_IGN);
    context_.reset(SSL_CTX_new(TLS_client_method()));
    session_.reset(SSL_new(context_.get()));
    SSL_set_fd(session_.get(), socket_.native());
    connected_ = SSL_connect(session_.get()) == 1;
  }
  bool connected() const { return connected_; }
  void send(const std::string& bytes) {
    EXPECT_EQ(SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size())), static_cast<int>(bytes.size()));
  }
  // Until the server says that nothing more comes.
  std::string read_all() {
    std::string all(1, '\0');
    std::size_t size = 0;
    for (int got = 0; (got = SSL_read(session_.get(), all.data() + size, static_cast<int>(all.size() - size))) > 0;) {
      size += static_cast<std::size_t>(got);
      all.resize(size + 65536);
    }
    clean_end_ = SSL_get_error(session_.get(), 0) == SSL_ERROR_ZERO_RETURN;
    all.resize(size);
    return all;
  }
  bool clean_end() const { return clean_end_; }

 private:
  RawClient socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> session_{nullptr, SSL_free};
  bool connected_ = false;
  bool clean_end_ = false;
};

TEST(Tls, AnswersSmallAndLargeBodiesAndStreams) {
  const testing::TempFolder folder;
  const TlsFiles files = make_certificate(folder);
  TestServer server([&](ServerOptions& options) { options.tls = files; });
  EXPECT_TRUE(server.server().url().starts_with("https://127.0.0.1:"));
  const std::string large(std::size_t{3} << 20, 'x');
  for (const std::string& body : {std::string("small"), large}) {
    TlsClient client(server.port());
    ASSERT_TRUE(client.connected());
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    const std::string reply = client.read_all();
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 ") && reply.ends_with("\r\n\r\n" + body)) << reply.size();
  }
  TlsClient streaming(server.port());
  streaming.send("POST /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\n3");
  const std::string events = streaming.read_all();
  EXPECT_NE(events.find("data: c\n\n"), std::string::npos) << events;
  EXPECT_TRUE(events.ends_with("0\r\n\r\n"));
}

TEST(Tls, StrangersAreDroppedAndOthersServed) {
  const testing::TempFolder folder;
  const TlsFiles files = make_certificate(folder);
  TestServer server([&](ServerOptions& options) { options.tls = files; });
  RawClient plain(server.port());
  plain.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(plain.read_all().find("hello"), std::string::npos);
  RawClient silent(server.port());  // stays in the middle of nothing
  RawClient half(server.port());
  half.send("\x16\x03\x01");
  half.close();
  TlsClient good(server.port());
  good.send("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(good.read_all().ends_with("hello"));
}

TEST(Tls, ALeavingClientIsNoticed) {
  const testing::TempFolder folder;
  const TlsFiles files = make_certificate(folder);
  TestServer server([&](ServerOptions& options) { options.tls = files; });
  {
    TlsClient client(server.port());
    client.send("POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return server.waits().begun == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return server.waits().gone == 1; }));
}

TEST(Tls, BadFilesAreNamed) {
  const testing::TempFolder folder;
  const TlsFiles files = make_certificate(folder);
  const auto missing = TlsContext::load(folder.file("none.pem"), files.key);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().param, "--tls-cert");
  const auto wrong = TlsContext::load(files.certificate, files.certificate);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().param, "--tls-key");
  const testing::TempFolder other;
  const auto foreign = TlsContext::load(files.certificate, make_certificate(other).key);
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error().param, "--tls-key");
}

TEST(UnixSocket, ServesItsOwnerAlone) {
  const testing::TempFolder folder;
  const std::string path = folder.file("linnet.sock");
  {
    TestServer server([&](ServerOptions& options) { options.listen.unix_path = path; });
    EXPECT_EQ(server.server().url(), "unix:" + path);
    struct stat found {};
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600U);
    RawClient client = RawClient::to_unix_socket(path);
    client.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(client.read_response().ends_with("hello"));
    boost::asio::io_context io;
    const auto second = listen(io, {.unix_path = path});
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::kIo);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(UnixSocket, OnlyDeadSocketsAreReplaced) {
  const testing::TempFolder folder;
  const std::string path = folder.file("linnet.sock");
  boost::asio::io_context io;
  ASSERT_TRUE(listen(io, {.unix_path = path}).ok());  // closed at once, and its file left behind
  ASSERT_TRUE(fs::exists(path));
  EXPECT_TRUE(listen(io, {.unix_path = path}).ok());
  const std::string file = folder.file("data");
  std::fclose(std::fopen(file.c_str(), "w"));
  for (const std::string& bad : {file, folder.file("none/x.sock"), std::string(200, 'x')}) {
    const auto refused = listen(io, {.unix_path = bad});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().param, "--unix");
  }
  EXPECT_TRUE(fs::exists(file));
}

}  // namespace
}  // namespace linnet::http
