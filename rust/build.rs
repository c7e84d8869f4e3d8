// Compiles the C++ half of the bridge into the static library and writes its headers below cxxbridge/.
fn main() {
    cxx_build::bridge("src/lib.rs").std("c++20").compile("linnet_text_bridge");
    println!("cargo:rerun-if-changed=src/lib.rs");
}
