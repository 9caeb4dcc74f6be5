// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/node_api/tls_server.h"

#include <cstdio>
#include <stdexcept>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace gantry::node_api {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

struct KeyPair {
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key{EVP_EC_gen("P-256"), EVP_PKEY_free};
  std::unique_ptr<X509, decltype(&X509_free)> certificate{X509_new(), X509_free};
};

/// Signed by itself, for an address.
KeyPair MakeCertificate(const std::string& address) {
  KeyPair pair;
  X509* const certificate = pair.certificate.get();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, pair.key.get());
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  for (const auto& [kind, value] : {std::pair(NID_subject_alt_name, "IP:" + address),
                                    std::pair(NID_basic_constraints, std::string("CA:TRUE"))}) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(certificate, pair.key.get(), EVP_sha256());
  return pair;
}

}  // namespace

struct TlsServer::State {
  asio::io_context loop;
  asio::ssl::context tls{asio::ssl::context::tls_server};
  asio::ip::tcp::acceptor acceptor{loop,
                                   asio::ip::tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
  std::string answer;
  std::string asked;
  std::thread thread;

  void Serve() {
    boost::system::error_code error;
    asio::ip::tcp::socket socket(loop);
    acceptor.accept(socket, error);
    asio::ssl::stream<asio::ip::tcp::socket> stream(std::move(socket), tls);
    stream.handshake(asio::ssl::stream_base::server, error);
    if (error) {
      return;
    }
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> request;
    http::read(stream, buffer, request, error);
    std::ostringstream text;
    text << request;
    asked = text.str();
    asio::write(stream, asio::buffer(answer), error);
    stream.shutdown(error);
  }
};

TlsServer::TlsServer(const std::string& ca_file, const std::string& address, std::string answer)
    : state_(std::make_unique<State>()) {
  state_->answer = std::move(answer);
  const KeyPair pair = MakeCertificate(address);
  SSL_CTX_use_certificate(state_->tls.native_handle(), pair.certificate.get());
  SSL_CTX_use_PrivateKey(state_->tls.native_handle(), pair.key.get());
  std::FILE* const file = std::fopen(ca_file.c_str(), "we");
  if (file == nullptr || PEM_write_X509(file, pair.certificate.get()) != 1) {
    throw std::runtime_error("write " + ca_file);
  }
  std::fclose(file);
  state_->thread = std::thread([state = state_.get()] { state->Serve(); });
}

TlsServer::~TlsServer() { asked(); }

std::string TlsServer::port() const {
  return std::to_string(state_->acceptor.local_endpoint().port());
}

const std::string& TlsServer::asked() {
  if (state_->thread.joinable()) {
    state_->thread.join();
  }
  return state_->asked;
}

}  // namespace gantry::node_api
